"""Right answers to exercise 07 by other parts of the engine, and what is sealed."""

# ruff: noqa: B023 - what is made in a loop runs before the loop goes on

import math
import os
import pickle
from collections import defaultdict
from operator import add

import numpy as np
import pytest

from distlab.dataflow import RDD, StorageLevel
from distlab.dataflow.trial.sealed import Reader, Sealed, opening, seal
from distlab.grading import ClustersFound, JoinedInPlace, MapSideJoin

# ---- step 1 ----------------------------------------------------------------------


def with_numbers(rdd, function, partitions):
    def combine(number, pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table[key], value) if key in table else value
        return iter(table.items())

    placed = rdd.mapPartitionsWithIndex(combine).partitionBy(numPartitions=partitions)
    return placed.mapPartitionsWithIndex(combine, True)


def with_generators(rdd, function, partitions):
    class Table(dict):
        def take(self, key, value):
            self[key] = function(self[key], value) if key in self else value

    def combine(pairs):
        table = Table()
        for pair in pairs:
            table.take(*pair)
        yield from table.items()

    assert isinstance(rdd, RDD) and rdd.getNumPartitions() > 0
    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


@pytest.mark.parametrize("case", ["keys of many kinds", "values that are lists"])
@pytest.mark.parametrize("function", [with_numbers, with_generators])
def test_another_reduce_by_key_is_right(function, case):
    verdict = JoinedInPlace(function, case).judge()
    assert verdict.outcome == "pass", verdict


# ---- step 2 ----------------------------------------------------------------------


def table_of(pairs):
    table = defaultdict(list)
    for key, value in pairs:
        table[key].append(value)
    return table


def by_partitions(context, large, small):
    table = context.broadcast(dict(table_of(small)))

    def joined(pairs):
        rows = table.value
        return ((k, (v, w)) for k, v in pairs for w in rows.get(k, ()))

    return large.mapPartitions(joined)


def filters_first(context, large, small):
    table = context.broadcast(table_of(small))
    found = large.filter(lambda pair: pair[0] in table.value)
    both = found.map(lambda pair: (pair[0], pair[1], table.value[pair[0]]))
    return both.flatMap(lambda all: [(all[0], (all[1], each)) for each in all[2]])


@pytest.mark.parametrize("case", ["keys with several values", "a table of 600 rows"])
@pytest.mark.parametrize("function", [by_partitions, filters_first])
def test_another_join_is_right(function, case):
    verdict = MapSideJoin(function, case).judge()
    assert verdict.outcome == "pass", verdict


# ---- step 3 ----------------------------------------------------------------------


def nearest(point, centres):
    return min(range(len(centres)), key=lambda n: math.dist(point, centres[n]))


def added(one, other):
    return tuple(map(add, one[0], other[0])), one[1] + other[1]


def means(sums, centres):
    """Return the new centres, of (cluster, (sum, count))."""
    sums = dict(sums)
    return [
        tuple(float(x) / sums[n][1] for x in sums[n][0]) if n in sums else tuple(centre)
        for n, centre in enumerate(centres)
    ]


def with_arrays(lines, parse, centres, steps):
    """One array for each partition, a broadcast, and a tree."""

    def read(own):
        return [np.array([parse(line) for line in own])]

    arrays = lines.mapPartitions(read).persist(StorageLevel.MEMORY_AND_DISK)
    for _ in range(steps):
        sent = lines.context.broadcast(np.array(centres))

        def sums(own):
            total = np.zeros((len(sent.value), len(sent.value[0]) + 1))
            for points in own:
                for point in points:
                    total[nearest(point, sent.value)] += [*point, 1]
            yield total

        total = arrays.mapPartitions(sums).treeReduce(add)
        sent.unpersist()
        found = [(n, (row[:-1], row[-1])) for n, row in enumerate(total) if row[-1]]
        centres = means(found, centres)
    return centres


def with_a_class(lines, parse, centres, steps):
    class Sum:
        def __init__(self, point, count=1):
            self.point, self.count = point, count

        def __add__(self, other):
            point = tuple(map(add, self.point, other.point))
            return Sum(point, self.count + other.count)

    points = lines.map(parse).cache()
    for _ in range(steps):
        mine = points.keyBy(lambda point: nearest(point, centres)).mapValues(Sum)
        sums = mine.reduceByKey(add).collect()
        centres = means([(n, (own.point, own.count)) for n, own in sums], centres)
    return centres


def with_accumulators(lines, parse, centres, steps):
    points, context = lines.map(parse).cache(), lines.context
    for _ in range(steps):
        totals = [[context.accumulator(0.0) for _ in centre] for centre in centres]
        counts = [context.accumulator(0) for _ in centres]

        def count(point):
            number = nearest(point, centres)
            counts[number].add(1)
            for total, x in zip(totals[number], point, strict=True):
                total.add(x)

        points.foreach(count)
        sums = [
            ([x.value for x in t], c.value) for t, c in zip(totals, counts, strict=True)
        ]
        centres = means([(n, own) for n, own in enumerate(sums) if own[1]], centres)
    return centres


def with_keys_of_numpy(lines, parse, centres, steps):
    points = lines.map(parse).map(np.array).cache()
    for _ in range(steps):
        now = np.array(centres)
        mine = points.map(lambda point: (((now - point) ** 2).sum(1).argmin(), point))
        sums = mine.combineByKey(
            lambda point: (point, 1),
            lambda own, point: (own[0] + point, own[1] + 1),
            added_arrays,
        )
        centres = means(sums.collect(), centres)
    return centres


def added_arrays(one, other):
    return one[0] + other[0], one[1] + other[1]


def begins_with_a_count(lines, parse, centres, steps):
    points = lines.map(parse).cache()
    points.count()
    for _ in range(steps):
        mine = points.map(lambda point: (nearest(point, centres), (point, 1)))
        centres = means(mine.reduceByKeyLocally(added).items(), centres)
    points.unpersist()
    return centres


MEANS = [
    with_arrays,
    with_a_class,
    with_accumulators,
    with_keys_of_numpy,
    begins_with_a_count,
]


@pytest.mark.parametrize("function", MEANS, ids=lambda each: each.__name__)
def test_another_k_means_is_right(function):
    for case in ("three clusters", "a worker killed between two steps"):
        verdict = ClustersFound(function, case).judge()
        assert verdict.outcome == "pass", verdict


def test_lines_kept_and_points_remembered_by_the_functions_are_not_kept():
    def remembers(lines, parse, centres, steps):
        known = {}

        def read(line):
            if line not in known:
                known[line] = parse(line)
            return known[line]

        points = lines.cache().map(read)
        for _ in range(steps):
            mine = points.map(lambda point: (nearest(point, centres), (point, 1)))
            centres = means(mine.reduceByKey(added).collect(), centres)
        return centres

    verdict = ClustersFound(remembers, "three clusters").judge()
    assert verdict.outcome == "fail"
    assert "What is kept are not points yet" in verdict.hint, verdict


# ---- what is sealed --------------------------------------------------------------


class Pair(tuple):
    """A tuple of a kind that nobody knows."""


PLAIN = [None, True, 3, -(2**70), 0.5, "a", b"b", (1, [2, {"c": {3}}]), frozenset({4})]


def test_plain_data_arrives_as_it_is():
    assert Reader(seal(PLAIN)).load() == PLAIN


def test_what_is_not_plain_arrives_sealed_and_comes_back():
    sent = [Pair([1]), np.array([1.5, 2.5]), defaultdict(list, a=[1])]
    sealed = Reader(seal(sent)).load()
    assert [type(each) for each in sealed] == [Sealed] * 3
    assert [each.kind for each in sealed] == ["Pair", "ndarray", "defaultdict"]
    again = pickle.loads(opening({"in": sealed}))["in"]
    assert type(again[0]) is Pair and again[2] == sent[2]
    assert np.array_equal(again[1], sent[1])
    assert Reader(seal(Pair([1]))).load() == sealed[0] != sealed[1]


def test_keys_of_numpy_are_the_same_key():
    one, other = (Reader(seal(np.int64(7))).load() for _ in range(2))
    assert one == other and hash(one) == hash(other)


class Calls:
    """Calls something where it is unpickled."""

    def __init__(self, *what):
        self.what = what

    def __reduce__(self):
        return self.what


@pytest.mark.parametrize(
    "what", [(os.getpid, ()), (eval, ("1",)), (Sealed, ("", 1, 2))]
)
def test_a_trusted_process_calls_nothing_that_it_reads(what):
    with pytest.raises((pickle.UnpicklingError, TypeError)):
        Reader(pickle.dumps(Calls(*what))).load()
