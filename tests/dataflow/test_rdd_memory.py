"""More than memory holds goes to disk, and the result is the same."""

import operator
import os
from collections import Counter

import pytest

from distlab.dataflow import Context

MANY = 30_000


@pytest.fixture(scope="module")
def small():
    """A Context whose workers may hold very little."""
    with Context(1, memory_bytes=2**20) as context:
        context.range(1).count()
        yield context


def spilled(sc):
    return sum(job.counts.get("spilled_records", 0) for job in sc.jobs[-2:])


def keyed(sc, keys):
    return sc.parallelize(range(MANY), 2).map(lambda n: (n * 7919 % keys, str(n)))


def test_many_keys_are_combined_on_disk(small):
    counts = keyed(small, MANY).mapValues(len).reduceByKey(operator.add, 2)
    found = counts.collect()
    assert spilled(small) > 0
    expected = {n * 7919 % MANY: len(str(n)) for n in range(MANY)}
    assert len(found) == len(expected) and dict(found) == expected


def test_many_values_are_grouped_on_disk(small):
    groups = keyed(small, 500).groupByKey(1).mapValues(len).collect()
    assert spilled(small) > 0
    assert dict(groups) == Counter(n * 7919 % 500 for n in range(MANY))


def test_many_records_are_sorted_on_disk(small):
    assert keyed(small, MANY).sortByKey(True, 1).keys().collect() == sorted(
        n * 7919 % MANY for n in range(MANY)
    )
    assert spilled(small) > 0
    falling = keyed(small, 1000).sortByKey(False, 1).collect()
    expected = [(n * 7919 % 1000, str(n)) for n in range(MANY)]
    assert falling == sorted(expected, key=lambda pair: pair[0], reverse=True)


def test_spilled_files_are_gone_after_the_task(small):
    keyed(small, MANY).groupByKey(1).count()
    assert spilled(small) > 0
    names = [n for _, _, files in os.walk(small.cluster.folder) for n in files]
    assert names and not [n for n in names if n.startswith("spill")]


def test_enough_memory_spills_nothing(sc):
    assert keyed(sc, MANY).groupByKey(2).count() == MANY
    assert spilled(sc) == 0
