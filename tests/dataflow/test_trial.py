"""Functions on trial run in a Python of their own, and nothing of them leaks."""

import os
import signal
import socket
import subprocess
from pathlib import Path
from unittest import mock

import pytest

from distlab.dataflow.trial import Odd, Plan, Trial, TrialTimeout

FILES = {
    "a.txt": b"one two\nthree two\n" * 20,
    "b/c.txt": b"two\n\nthe only line of its kind",
    "empty.txt": b"",
}
ONE = Plan(1, 1)


def mapper(name, line):
    for word in line.split():
        yield word, name


def reducer(word, names):
    return len(list(names))


def trial(mapper=mapper, reducer=reducer, combiner=None, partitioner=None, **more):
    return Trial([mapper, reducer, combiner, partitioner], FILES, **more)


def values_of(reducer, **how):
    """Return what a reducer gives for each word."""
    (job,), failed = trial(reducer=reducer).run([ONE], **how)
    assert failed is None
    return dict(job.pairs)


def value_of(reducer, **how):
    """Return what a reducer gives for the word "kind"."""
    return values_of(reducer, **how)["kind"]


WORDS = ["one", "two", "three", "the", "only", "line", "of", "its", "kind"]


def test_every_plan_gives_what_one_process_counts():
    plans = [ONE, Plan(3, 4, 50), Plan(2, 2, 30, kills=((1, 1),))]
    tried, failed = trial().run(plans)
    assert failed is None
    for job in tried:
        assert dict(job.pairs)["two"] == 41
        assert dict(job.pairs)["kind"] == 1
    assert "kill" in tried[2].labels("fault") and not tried[1].labels("fault")


def test_plain_values_come_back_as_they_are():
    values = ["a", 3, 2.5, True, None, [1, ["b"]], (1, ("x", 2)), "\ud800"]
    given = dict(zip(WORDS, values, strict=False))
    found = values_of(lambda word, names: given.get(word))
    for word, value in given.items():
        assert found[word] == value and type(found[word]) is type(value)


def test_other_values_come_back_as_descriptions():
    values = [{"tuple": [1]}, {1}, mock.ANY, ..., b"x", 1j]
    given = dict(zip(WORDS, values, strict=False))
    found = values_of(lambda word, names: [given.get(word)])
    for word, value in given.items():
        assert isinstance(found[word][0], Odd)
        assert found[word][0].kind == type(value).__name__


def test_the_hash_seed_is_that_of_the_run():
    def hashed(word, names):
        return hash(word)

    assert value_of(hashed, seed=1) == value_of(hashed, seed=1)
    assert value_of(hashed, seed=1) != value_of(hashed, seed=2)


def test_a_partitioner_is_made_once_and_stays_the_same():
    def make(salt):
        chosen = os.getpid() % 2
        return lambda key, reducers: (len(key) + chosen + salt) % reducers

    plan = Plan(1, 2, partitioner=True)
    here = trial(partitioner=make, partitioning=(1,))
    parts = [here.run([plan], seed=seed)[0][0].parts for seed in (1, 2, 3, 4)]
    assert all(part == parts[0] for part in parts)
    assert all(parts[0])


def test_a_combiner_on_small_groups_sees_all_values_and_its_own():
    def add(word, counts):
        return sum(counts)

    def ones(name, line):
        return [(word, 1) for word in line.split()]

    plans = [Plan(2, 2, 100, combiner=True, regrouped=True)]
    (job,), _ = trial(ones, add, add).run(plans)
    assert dict(job.pairs)["two"] == 41
    (job,), _ = trial(ones, add, lambda word, counts: 1).run(plans)
    assert dict(job.pairs)["two"] < 41


EFFECTS = {
    "write": lambda path: Path(path).write_text("x"),
    "touch": lambda path: Path(path).touch(),
    "descriptor": lambda path: os.open(path, os.O_CREAT | os.O_RDWR),
    "remove": os.remove,
    "mkdir": os.mkdir,
    "program": lambda path: subprocess.run(["touch", path]),
    "shell": lambda path: os.system(f"touch {path}"),
    "fork": lambda path: os.fork() or os._exit(0),
    "kill": lambda path: os.kill(os.getppid(), signal.SIGTERM),
    "connect": lambda path: socket.create_connection(("127.0.0.1", 9), 1),
}


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("where", ["mapper", "reducer"])
def test_a_side_effect_is_refused_before_it_happens(effect, where, tmp_path):
    act, path = EFFECTS[effect], str(tmp_path / "trace")

    def acting(name, line):
        act(path)
        yield from mapper(name, line)

    def acting_late(word, names):
        yield 1
        act(path)

    functions = {"mapper": acting} if where == "mapper" else {"reducer": acting_late}
    tried, failed = trial(**functions).run([ONE])
    assert not tried and failed.kind == "SideEffect"
    assert not list(tmp_path.iterdir())


def test_reading_importing_and_printing_are_no_side_effects(capfd):
    def looks(word, names):
        import fractions

        print("looking")
        with open(os.devnull) as file:
            return str(fractions.Fraction(1, 2)) + file.read()

    assert value_of(looks) == "1/2"
    assert capfd.readouterr().out == ""


def test_functions_of_a_module_beside_the_notebook_are_found(tmp_path, monkeypatch):
    (tmp_path / "beside.py").write_text("def count(word, names): return 7")
    monkeypatch.syspath_prepend(tmp_path)
    import beside

    assert value_of(beside.count) == 7


def test_a_failure_is_told_with_its_plan_its_task_and_the_line():
    def fails(word, names):
        raise LookupError(f"no {word}")

    tried, failed = trial(reducer=fails).run([ONE, ONE])
    assert not tried and failed.plan == 0 and failed.task == "reduce 0"
    assert failed.kind == "LookupError"
    assert 'raise LookupError(f"no {word}")' in failed.story


def test_a_line_that_fails_once_is_mapped_again_by_the_same_worker():
    plan = Plan(1, 1, 100, trouble=("fails", "b/c.txt", "the only line of its kind"))
    (job,), failed = trial().run([plan])
    assert failed is None and dict(job.pairs)["kind"] == 1
    assert any(label.endswith("attempt 2") for label in job.labels("work"))
    assert job.skipped_records == 0 and not job.labels("fault")


def test_a_line_that_waits_gets_a_backup_on_another_worker():
    plan = Plan(2, 1, 100, trouble=("waits", "b/c.txt", "the only line of its kind"))
    (job,), failed = trial().run([plan])
    assert failed is None and dict(job.pairs)["kind"] == 1
    tasks = [
        (label[:5], worker) for kind, worker, label in job.events if kind == "work"
    ]
    assert any({(task, 0), (task, 1)} <= set(tasks) for task, _ in tasks)


def test_what_does_not_end_is_ended_with_all_its_processes():
    def forever(word, names):
        while True:
            pass

    with pytest.raises(TrialTimeout):
        trial(reducer=forever, timeout_s=3).run([ONE])
