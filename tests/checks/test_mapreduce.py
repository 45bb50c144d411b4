"""Jobs that are not right meet their hint, and what did not happen gives no verdict."""

import random
import zlib

import pytest

from distlab.checks import mapreduce as checks
from distlab.checks.kit import Inconclusive
from distlab.checks.kit.grading import judge
from distlab.checks.kit.jobs import mapped, on_jobs


def mapper(name, line):
    yield (name, next(iter(line.split()), "")), (len(line), 1)


def combiner(key, values):
    return tuple(map(sum, zip(*values, strict=True)))


def reducer(key, values):
    length, lines = combiner(key, values)
    return length / lines


def means(combiner=combiner, partition=lambda key, n: 0):
    functions = mapper, reducer, combiner, lambda sizes, reducers: partition
    return judge(checks.mean_lengths, functions, ([10, 60, 10, 90, 60, 10, 80], 3))


@pytest.mark.parametrize(
    ("partition", "hint"),
    [
        (lambda key, n: zlib.crc32(repr(key).encode()) % n, "All keys"),
        (lambda key, n: random.randrange(n), "All keys"),
        (lambda key, n: n, "All keys"),
        (lambda key, n: 0, "Large files meet"),
    ],
)
def test_a_partitioner_is_told_what_is_wrong_with_its_numbers(partition, hint):
    verdict = means(partition=partition)
    assert verdict.outcome == "fail" and hint in verdict.hints[0]


def stub(key, values):
    raise NotImplementedError("write this step")


def test_a_combiner_that_is_a_stub_or_of_another_kind_is_told_so():
    assert "Nothing of your own is written yet" in means(combiner=stub).hints[0]
    verdict = means(combiner=lambda key, values: len(list(values)))
    assert "a value of the same kind" in verdict.hints[0]


def test_a_fault_that_did_not_happen_gives_no_verdict():
    plans = {"with a kill": {"shows": "map .*lost"}}
    jobs = on_jobs((tagged, lambda key, values: 1), {"a": "x"}, plans)
    with pytest.raises(Inconclusive, match="with a kill"):
        list(jobs)


@pytest.mark.parametrize("split_bytes", [1, 7, 30, 1000])
def test_lines_are_in_the_map_tasks_in_which_the_engine_has_them(split_bytes):
    files = {"b/ä.txt": "ä b\r\n\nc\n" * 5, "b.txt": "", "a": "one\ntwo three"}
    plans = {"": {"split_bytes": split_bytes, "combiner": True}}
    functions = tagged, added, added
    (_, job), *_ = on_jobs(functions, files, plans)
    assert job["pairs"] == len(set(mapped(files, split_bytes)))


def tagged(name, line):
    return [((name, line), 1)]


def added(key, values):
    return sum(values)
