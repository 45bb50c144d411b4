"""A job on workers gives what one process gives, however it is cut and spilled."""

import random
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from distlab.dataflow import MapReduce
from distlab.dataflow.user_functions import stable_hash
from distlab.show import timeline

FAN_IN = 64
WORDS = ["the", "cat", "sat", "on", "a", "mat", "ä", "€uro", "x" * 50, "𝄞"]


def mapper(line):
    for word in line.split():
        yield word, 1


def reducer(word, counts):
    return sum(counts)


def write_text(folder, seed=0, lines=400):
    """Write three files of random words; return the words."""
    rng = random.Random(seed)
    words = WORDS + [f"w{number}" for number in range(300)]
    said = []
    for name, end in (("a", "\n"), ("b", "\r\n"), ("c", "\n")):
        text = ""
        for _ in range(rng.randrange(lines)):
            line = rng.choices(words, k=rng.randrange(12))
            said += line
            text += " ".join(line) + end
        text = text.removesuffix("\n") if name == "c" else text
        (folder / name).write_bytes(text.encode())
    (folder / "empty").touch()
    return said


@pytest.mark.parametrize("seed", range(2))
def test_words_are_counted_as_one_process_counts_them(tmp_path, seed):
    words = write_text(tmp_path, seed)
    rng = random.Random(seed)
    job = MapReduce(mapper, reducer, combiner=reducer if seed % 2 else None)
    output = job.run(
        tmp_path,
        workers=rng.randrange(1, 4),
        reducers=rng.randrange(1, 6),
        split_bytes=rng.randrange(300, 9000),
    )
    assert dict(output) == Counter(words)
    assert len(output) == len(list(output)) == len(set(words))
    counted = output.counters
    assert counted.mapped_records == len(words)
    assert counted.input_bytes == sum(p.stat().st_size for p in tmp_path.iterdir())


def test_pairs_come_by_partition_and_in_order_of_key(tmp_path):
    write_text(tmp_path)
    output = MapReduce(mapper, reducer).run(tmp_path, reducers=3)
    parts = [[key for key, _ in output.partition(number)] for number in range(3)]
    assert [key for key, _ in output] == [key for part in parts for key in part]
    assert all(part == sorted(part) for part in parts)
    assert all(
        stable_hash(key) % 3 == n for n, part in enumerate(parts) for key in part
    )


def test_an_index_knows_the_file_of_every_word(tmp_path):
    write_text(tmp_path)

    def index(name, line):
        return [(word, name) for word in line.split()]

    output = MapReduce(index, lambda word, names: sorted(set(names))).run(tmp_path)
    expected = defaultdict(set)
    for path in tmp_path.iterdir():
        for word in path.read_text().split():
            expected[word].add(path.name)
    assert dict(output) == {word: sorted(names) for word, names in expected.items()}


def test_little_memory_changes_nothing_but_the_spills(tmp_path):
    rng = random.Random(1)
    lines = [
        f"{rng.randrange(10**9):09} {'v' * rng.randrange(60)}" for _ in range(20000)
    ]

    def by_number(line):
        number, _, rest = line.partition(" ")
        yield number[:5], rest

    job = MapReduce(by_number, lambda key, values: list(values))
    much = job.run(lines, workdir=tmp_path / "much")
    little = job.run(lines, workdir=tmp_path / "little", memory_bytes=2**16)
    assert much.counters.spilled_records == 0
    assert little.counters.spilled_records == len(lines)
    assert _bytes(little) == _bytes(much)
    expected = defaultdict(list)
    for line in lines:
        number, _, rest = line.partition(" ")
        expected[number[:5]].append(rest)
    assert dict(little) == expected


def _bytes(output):
    return [Path(path).read_bytes() for path in output.paths]


def test_a_generator_reducer_gives_any_number_of_values():
    def twice_if_frequent(word, counts):
        count = sum(counts)
        if count > 1:
            yield count
            yield -count

    output = MapReduce(mapper, twice_if_frequent).run(["a b", "b c", "c b"])
    assert sorted(output) == [("b", -3), ("b", 3), ("c", -2), ("c", 2)]


def test_a_partitioner_says_which_reducer_gets_a_key():
    job = MapReduce(mapper, reducer, partitioner=lambda word, n: len(word) % n)
    output = job.run(["a bb ccc", "dd"], reducers=2)
    assert list(output.partition(0)) == [("bb", 1), ("dd", 1)]
    assert list(output.partition(1)) == [("a", 1), ("ccc", 1)]


def test_a_combiner_cuts_what_is_shuffled_and_nothing_else():
    lines = ["to be or not to be"] * 500
    plain = MapReduce(mapper, reducer).run(lines)
    combined = MapReduce(mapper, reducer, combiner=reducer).run(lines)
    assert list(plain) == list(combined)
    assert plain.counters.shuffled_records == 3000
    assert combined.counters.shuffled_records == 4 * combined.counters.map_tasks
    assert combined.counters.shuffled_bytes == sum(map(sum, combined.shuffled))


def test_keys_of_every_sortable_kind_are_grouped():
    kinds = [("s",), (b"b",), (1, 2.5, True), ((1, "a"), (1.0, "a"), (0, "b"))]
    kinds += [(None,), ((None, 1),), ((1, (None,)),)]
    for keys in kinds:
        job = MapReduce(
            lambda line, keys=keys: [(k, line) for k in keys], reducer_of_all
        )
        output = job.run(["x", "y"], reducers=3, split_bytes=2)
        assert dict(output) == {key: 2 * keys.count(key) for key in keys}


def test_equal_keys_of_different_types_are_one():
    keys = [-0.0, 0, 0.0, False, np.int64(0), np.float32(0)]
    job = MapReduce(lambda line: [(key, line) for key in keys], reducer_of_all)
    ((key, count),) = job.run(["x", "y"], split_bytes=2)
    assert key == 0 and count == 12


def test_long_keys_and_bytes_that_are_no_text_go_through(tmp_path):
    junk = random.Random(5).randbytes(100_000)
    (tmp_path / "junk").write_bytes(junk)
    output = MapReduce(lambda line: [(line, 1), ("k" * 10**5, 1)], reducer).run(
        tmp_path / "junk", split_bytes=30_000
    )
    lines = junk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    expected = Counter(line.decode(errors="replace") for line in lines)
    assert dict(output) == expected + Counter({"k" * 10**5: len(lines)})


def reducer_of_all(key, values):
    return len(list(values))


@pytest.mark.parametrize("inputs", [[], ["", "  "]], ids=["no line", "blanks"])
def test_no_words_are_an_empty_output(inputs):
    output = MapReduce(mapper, reducer).run(inputs)
    assert list(output) == [] and len(output) == 0
    assert "0 maps" in repr(output) or "1 map" in repr(output)


def test_strings_may_come_from_a_generator_and_hold_several_lines():
    output = MapReduce(lambda line: [(line, 1)], reducer).run(
        text for text in ("one\n", "two\nthree", "", "one")
    )
    assert dict(output) == {"one": 2, "two": 1, "three": 1, "": 1}


def test_the_output_stays_in_a_workdir_alone(tmp_path):
    output = MapReduce(mapper, reducer).run(["a b a"], workdir=tmp_path / "new")
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["output"]
    assert sorted(output.paths) == sorted(map(str, (tmp_path / "new/output").iterdir()))
    assert dict(output) == {"a": 2, "b": 1}


def test_what_workers_print_appears_with_their_number(capsys):
    def says(line):
        print("saw", line)
        return []

    MapReduce(says, reducer).run(["this"], workers=1)
    assert capsys.readouterr().out == "[worker 0] saw this\n"


def test_the_trace_has_every_attempt_and_can_be_drawn(tmp_path):
    write_text(tmp_path)
    output = MapReduce(mapper, reducer).run(tmp_path, split_bytes=3000)
    labels = {event.label for event in output.trace.events}
    maps = {f"map {n}, attempt 1" for n in range(output.counters.map_tasks)}
    assert maps | {"reduce 0, attempt 1", "reduce 1, attempt 1"} <= labels
    page, alt = output._repr_html_(), timeline(output).alt
    assert "<table" in page and "&#x27;" in page and "distlab-player" in page
    assert "2 workers" in alt and "map 0" in alt
    assert not any("rank" in text for text in (alt, repr(output.trace)))


def test_importing_it_is_light():
    code = (
        "import sys, distlab.dataflow\n"
        "print([m for m in ('torch', 'numpy', 'matplotlib', 'IPython', 'greenlet') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_hash_of_a_key_does_not_depend_on_the_process():
    code = (
        "from distlab.dataflow.user_functions import stable_hash as h\n"
        "print(h('ä'), h(b'b'), h(3), h(2.5), h((1, ('x', None))), h('\\udc80'))"
    )
    said = set()
    for seed in "12":
        command = [sys.executable, "-c", code]
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        said.add(subprocess.run(command, capture_output=True, env=env).stdout)
    assert len(said) == 1 and said != {b""}
    assert stable_hash((1, "a")) == stable_hash((1.0, "a")) == stable_hash((True, "a"))


@pytest.mark.parametrize("combiner", [None, reducer], ids=["plain", "combined"])
def test_more_runs_than_can_be_open_at_once_are_merged_in_passes(combiner):
    lines = [f"a {number % 50} {number}" for number in range(300)]
    job = MapReduce(mapper, reducer, combiner=combiner)
    output = job.run(lines, split_bytes=15)
    assert output.counters.map_tasks > 2 * FAN_IN
    assert dict(output) == Counter(word for line in lines for word in line.split())
