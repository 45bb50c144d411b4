"""A mistake is told once, with its record; nothing is left of the job."""

import os
import resource
import signal
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest

from distlab.dataflow import MapReduce
from distlab.errors import (
    InvalidArgument,
    NestedWorld,
    NotSerializable,
    TaskFailed,
    WorkdirError,
)
from distlab.faults import Kill, KillWorker, SlowWorker

LOCK = threading.Lock()


def words(line):
    return [(word, 1) for word in line.split()]


def total(word, counts):
    return sum(counts)


@pytest.fixture(autouse=True)
def no_file_left(tmp_path, monkeypatch):
    """Fail a test that leaves anything where temporary files go, or in its workdir."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    yield
    assert list((tmp_path / "temporary").iterdir()) == []
    if (tmp_path / "job").exists():
        assert list((tmp_path / "job").iterdir()) == []


def failure(mapper=words, reducer=total, lines=("a b", "c d"), **how):
    job = MapReduce(mapper, reducer, **how)
    with pytest.raises(TaskFailed) as caught:
        job.run(list(lines))
    return caught.value


def test_a_mapper_that_raises_is_told_with_file_line_and_traceback(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "numbers.txt").write_text("1\n2\nthree\n4\n")

    def double(line):
        yield line, 2 * int(line)

    with pytest.raises(TaskFailed) as caught:
        MapReduce(double, total).run(tmp_path / "in", workdir=tmp_path / "job")
    story = str(caught.value)
    assert story.startswith("map 0, on worker ")
    assert "ValueError: invalid literal for int() with base 10: 'three'" in story
    assert "numbers.txt, line 3: 'three'" in story
    assert "test_job_mistakes.py, line" in story and "2 * int(line)" in story
    assert "/distlab/dataflow/" not in story
    assert isinstance(caught.value.cause, ValueError)
    assert len(caught.value.trace) > 0


def test_a_reducer_that_raises_is_told_with_its_key():
    def fails(word, counts):
        return 1 / (word != "c")

    assert "The reducer was at the key 'c'." in str(failure(reducer=fails))
    combined = failure(lines=["c c"], combiner=fails)
    assert "The combiner was at the key 'c'." in str(combined)


@pytest.mark.parametrize(
    "mapper, said",
    [
        (lambda line: None, "the mapper returned None, and not (key, value) pairs"),
        (lambda line: [line], "which is no (key, value) pair"),
        (lambda line: [(["a"], 1)], "the key ['a'] is a list, which cannot be hashed"),
        (lambda line: [(1, 1), ("b", 1)], "keys are sorted, and 1 and 'b' cannot be"),
        (lambda line: [(float("nan"), 1)], "keys are sorted, and nan cannot be"),
        (lambda line: [(None, 1), ("a", 1)], "keys are sorted, and None and 'a'"),
        (lambda line: Counter(line.split()), "Return its items(), which are pairs"),
        (lambda line: line, "', and not (key, value) pairs. Yield them"),
        (lambda line: ["ab", "cd"], "the mapper gave 'ab', which is no"),
        (lambda line: [(object(), 1)], "whose hash may differ from process to process"),
        (lambda line: [("a", LOCK)], "cannot pickle '_thread.lock'"),
    ],
)
def test_pairs_that_cannot_be_are_named(mapper, said):
    job = MapReduce(mapper, total)
    with pytest.raises((TaskFailed, NotSerializable)) as caught:
        job.run(["a b", "c d"], reducers=1, split_bytes=3)
    assert said in str(caught.value)


@pytest.mark.parametrize("key", [float("nan"), frozenset("ab")], ids=["nan", "a set"])
def test_what_cannot_be_sorted_is_no_key_even_with_a_partitioner(key):
    described = failure(lambda line: [(key, 1)], partitioner=lambda key, n: 0)
    assert "keys are sorted, and" in str(described)


def test_a_partitioner_that_raises_is_told_with_its_key():
    described = failure(partitioner=lambda key, reducers: 1 // 0)
    assert isinstance(described.cause, ZeroDivisionError)
    assert "The partitioner was at the key 'a'" in str(described) and "1 // 0" in str(
        described
    )


def test_a_partitioner_has_to_name_a_reducer():
    described = failure(partitioner=lambda key, reducers: reducers)
    assert "the partitioner returned 2; it returns a number from 0 to 1" in str(
        described
    )


def test_a_task_that_ends_its_worker_again_and_again_is_given_up():
    described = failure(lambda line: os._exit(3))
    assert "cannot be done: its worker left with exit status 3, 5 times" in str(
        described
    )


def exits_at(wanted, result=None):
    """Return a function of one or two arguments that ends its worker at the first."""

    def exits(first, *_):
        if first == wanted:
            os._exit(3)
        return [(first, 1)] if result is None else result

    return exits


LINES = ["a b"] * 40 + ["c"] + ["d"] * 40


@pytest.mark.parametrize(
    "functions, named",
    [
        ((exits_at("c"),), r"The mapper was at strings, line 41: 'c'"),
        ((exits_at(0), exits_at("c", 1)), "The reducer was at the key 'c'"),
        (
            (exits_at(0), exits_at(0, 1), exits_at("c", 1)),
            "The combiner was at the key 'c'",
        ),
    ],
    ids=["mapper", "reducer", "combiner"],
)
def test_what_ends_its_workers_is_told_with_its_record(functions, named):
    mapper, reducer, combiner = (*functions, exits_at(0, 1), None)[:3]
    job = MapReduce(mapper, reducer, combiner=combiner)
    with pytest.raises(TaskFailed, match=named):
        job.run(LINES, split_bytes=200, skip_bad_records=3)


def test_bad_records_are_skipped_if_allowed_and_only_so_many():
    lines = [f"{number}" for number in range(100)] + ["x", "y"]

    def number(line):
        yield int(line) % 10, 1

    output = MapReduce(number, total).run(lines, skip_bad_records=2, split_bytes=50)
    assert dict(output) == dict.fromkeys(range(10), 10)
    assert output.counters.skipped_records == 2
    assert output.counters.map_attempts < output.counters.map_tasks + 10
    assert [note for note in output.notes if "line 101" in note]
    with pytest.raises(TaskFailed, match="line 102: 'y'"):
        MapReduce(number, total).run(lines, skip_bad_records=1, split_bytes=50)


def test_what_cannot_travel_is_named():
    def locked(line):
        with LOCK:
            return words(line)

    with pytest.raises(NotSerializable, match="`LOCK`, used by `locked`, is a lock"):
        MapReduce(locked, total).run(["a"])


@pytest.mark.parametrize(
    "how, said",
    [
        ({"workers": 500}, "workers is a whole number from 1 to 64, and got 500"),
        ({"reducers": 1.5}, "reducers is a whole number"),
        ({"memory_bytes": 10}, "memory_bytes is a whole number of at least 65,536"),
        ({"faults": Kill(0, 1)}, "faults takes KillWorker and SlowWorker"),
        ({"faults": KillWorker(2, 1)}, "of 2 workers the last is 1"),
        ({"faults": KillWorker(0, 0)}, "counted from 1"),
        ({"faults": SlowWorker(0, 0.5)}, "how many times slower"),
    ],
)
def test_arguments_are_refused_before_anything_starts(how, said):
    with pytest.raises(InvalidArgument, match=said):
        MapReduce(words, total).run(["a"], **how)


@pytest.mark.parametrize(
    "inputs, said",
    [
        ("no/such/file", "there is no file or folder 'no/such/file'"),
        (7, "and got 7"),
        (b"text", "and got b'text'"),
        (["a", 3], "except for number 1: 3"),
        ([Path("."), "a"], "both Paths and strings"),
        ([__file__], "is a file here"),
    ],
)
def test_inputs_that_are_none_are_refused(inputs, said):
    with pytest.raises(InvalidArgument, match=said):
        MapReduce(words, total).run(inputs)


@pytest.mark.parametrize(
    "functions, said",
    [
        ((None, total), "mapper is missing"),
        ((words, 3), "reducer is a function, called as reducer"),
        ((lambda: 1, total), r"mapper\(line\) or mapper\(name, line\)"),
        ((words, lambda key: 1), r"reducer is called as reducer\(key, values\)"),
    ],
)
def test_functions_that_cannot_be_called_are_refused(functions, said):
    with pytest.raises(InvalidArgument, match=said):
        MapReduce(*functions)


def test_inputs_that_raise_half_way_leave_nothing():
    def lines():
        yield "a"
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        MapReduce(words, total).run(lines())


def test_an_output_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "other" / "output").mkdir(parents=True)
    with pytest.raises(InvalidArgument, match="is there already"):
        MapReduce(words, total).run(["a"], workdir=tmp_path / "other")


def test_a_workdir_that_cannot_be_one_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WorkdirError, match="cannot be used"):
        MapReduce(words, total).run(["a"], workdir=tmp_path / "file")


def test_a_disk_that_is_full_is_told_as_that(tmp_path):
    def many(line):
        # What a full disk does to a write, a limit on the size of files does too.
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        return [(f"{line} {number}", 1) for number in range(3000)]

    with pytest.raises(WorkdirError, match="Give run a workdir with more room"):
        MapReduce(many, total).run(["a"], workdir=tmp_path / "job")


def test_a_disk_that_is_full_in_a_reduce_is_told_as_that(tmp_path):
    def long(key, values):
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        return key * 9000

    with pytest.raises(WorkdirError, match=r"during reduce \d.*Errno.*more room"):
        MapReduce(words, long).run(["a b"], workdir=tmp_path / "job")
    assert not (tmp_path / "job").exists()


def test_a_disk_that_is_full_before_the_job_begins_is_told_as_that(tmp_path):
    lines = ("x" * 1000 for _ in range(1000))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(WorkdirError, match=r"inputs could not be stored"):
            MapReduce(words, total).run(lines, workdir=tmp_path / "job")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "job").exists()


def test_an_input_that_is_removed_meanwhile_is_told(tmp_path):
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / name).write_text("a b\n" * 100)

    def removes(line):
        (tmp_path / "in" / "b").unlink(missing_ok=True)
        return words(line)

    with pytest.raises(TaskFailed, match="It was reading the input b") as caught:
        MapReduce(removes, total).run(tmp_path / "in", workers=1, split_bytes=400)
    assert isinstance(caught.value.cause, FileNotFoundError)


def test_a_line_that_is_too_long_for_the_memory_is_told(tmp_path):
    (tmp_path / "long").write_bytes(b"short\n" + b"x" * 3_000_000)
    job = MapReduce(lambda line: [(len(line), 1)], total)
    with pytest.raises(TaskFailed, match=r"a line of more than 2.097 MB"):
        job.run(tmp_path / "long", memory_bytes=2**24)
    output = job.run(tmp_path / "long", memory_bytes=2**25)
    assert dict(output) == {5: 1, 3_000_000: 1}


def test_a_job_inside_a_worker_is_refused():
    def nested(line):
        MapReduce(words, total).run([line])

    assert isinstance(failure(nested).cause, NestedWorld)


def test_ctrl_c_ends_a_job_and_leaves_nothing(tmp_path):
    def slow(line):
        threading.Event().wait(60)

    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        MapReduce(slow, total).run(["a", "b"], workdir=tmp_path / "job")
    timer.join()
