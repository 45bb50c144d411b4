"""Right answers to exercise 07 by other parts of the engine, and what is sealed."""

# ruff: noqa: B023 - what is made in a loop runs before the loop goes on

import contextlib
import math
import os
import pickle
import struct
from collections import defaultdict
from functools import partial
from operator import add
from typing import NamedTuple

import numpy as np
import pytest

from distlab.dataflow import RDD, StorageLevel
from distlab.dataflow.trial.sealed import (
    Named,
    Reader,
    Sealed,
    SealedTuple,
    opening,
    resolved,
    seal,
)
from distlab.errors import WorkdirError
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


def with_names(rdd, function, partitions):
    def combine(pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table[key], value) if key in table else value
        return [Both(key, value) for key, value in table.items()]

    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


@pytest.mark.parametrize("case", ["keys of many kinds", "values that are lists"])
@pytest.mark.parametrize("function", [with_numbers, with_generators, with_names])
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


class Table:
    """A table that is called with a key."""

    def __init__(self, pairs):
        self.rows = table_of(pairs)

    def __call__(self, key):
        return self.rows.get(key, [])


def calls_its_table(context, large, small):
    table = context.broadcast(Table(small))
    return large.flatMap(
        lambda pair: [(pair[0], (pair[1], each)) for each in table.value(pair[0])]
    )


@pytest.mark.parametrize("case", ["keys with several values", "a table of 600 rows"])
@pytest.mark.parametrize("function", [by_partitions, filters_first, calls_its_table])
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


def nearest_alone(points, centres, steps):
    """Return the centres after some steps, in one process."""
    for _ in range(steps):
        own = defaultdict(list)
        for point in points:
            own[nearest(point, centres)].append(point)
        sums = {
            n: (map(sum, zip(*all, strict=True)), len(all)) for n, all in own.items()
        }
        centres = means(sums, centres)
    return centres


def sends_all_in_one_record(lines, parse, centres, steps):
    points = lines.map(parse).cache()
    for _ in range(steps):
        packed = points.mapPartitions(lambda own: [(0, list(own))]).groupByKey(1)
        (whole,) = packed.values().collect()
        centres = nearest_alone([p for part in whole for p in part], centres, 1)
    return centres


def adds_up_all(lines, parse, centres, steps):
    """Brings the points to the driver in one accumulator, as one long number."""
    points, total = lines.map(parse).cache(), lines.context.accumulator(0)

    def tell(number, own):
        for place, point in enumerate(own):
            bits = int.from_bytes(struct.pack("2d", *point), "little")
            total.add(bits << 128 * (1000 * number + place))
        return []

    points.mapPartitionsWithIndex(tell).count()
    data = total.value.to_bytes(16 * 4000, "little")
    found = [p for p in struct.iter_unpack("2d", data) if p != (0.0, 0.0)]
    points.count()
    return nearest_alone(found, centres, steps)


def raises_all(lines, parse, centres, steps):
    """Brings the points to the driver in what tasks raise."""
    points = lines.map(parse).cache()

    def tell(own):
        raise ValueError(repr(list(own)[:8]))

    for _ in range(steps):
        with contextlib.suppress(Exception):
            points.foreachPartition(tell)
        with contextlib.suppress(AttributeError):
            points.another_failure()
    return centres


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (sends_all_in_one_record, "The points stay with the workers"),
        (adds_up_all, "The points stay with the workers"),
        (raises_all, ""),
    ],
)
def test_points_that_come_by_another_way_are_counted(function, hint):
    verdict = ClustersFound(function, "three clusters").judge()
    assert verdict.outcome == "fail" and hint in verdict.hint, verdict
    assert "centres are right" in verdict.found or "ValueError" in verdict.found


def test_a_shuffle_is_judged_by_its_bytes_too():
    def in_lists(lines, parse, centres, steps):
        points = lines.map(parse).cache()
        for _ in range(steps):
            packed = points.mapPartitions(lambda own: [(0, list(own))])
            whole = packed.reduceByKey(add, 1)
            step = partial(nearest_alone, centres=centres, steps=1)
            centres = whole.values().map(step).first()
        return centres

    verdict = ClustersFound(in_lists, "three clusters").judge()
    assert "bytes through a shuffle" in verdict.found, verdict
    assert "Every point crosses the network" in verdict.hint


def test_a_disk_that_the_learner_says_is_full_is_not():
    def raises(context, large, small):
        raise WorkdirError("the disk is full")

    assert MapSideJoin(raises, "a table of 600 rows").judge().outcome == "fail"


def test_centres_too_large_for_a_float_are_no_points():
    def huge(lines, parse, centres, steps):
        return [tuple(10**400 for _ in centre) for centre in centres]

    assert "tuple of numbers" in ClustersFound(huge, "three clusters").judge().hint


# ---- what is sealed --------------------------------------------------------------


class Point:
    """Something that nobody else knows."""


class Both(NamedTuple):
    """A pair with names."""

    key: str
    value: object


PLAIN = [None, True, 3, -(2**70), 0.5, "a", b"b", (1, [2, {"c": {3}}]), frozenset({4})]


def test_plain_data_arrives_as_it_is():
    assert Reader(seal(PLAIN)).load() == PLAIN


def test_what_is_not_plain_arrives_sealed_and_comes_back():
    sent = [Point(), np.array([1.5, 2.5]), defaultdict(list, a=[1])]
    sealed = Reader(seal(sent)).load()
    assert [type(each) for each in sealed] == [Sealed] * 3
    assert [each.kind for each in sealed] == ["Point", "ndarray", "defaultdict"]
    again = pickle.loads(opening({"in": sealed}))["in"]
    assert type(again[0]) is Point and again[2] == sent[2]
    assert np.array_equal(again[1], sent[1])
    assert Reader(seal(Point())).load() == sealed[0] != sealed[1]


def test_keys_of_numpy_are_the_same_key():
    one, other = (Reader(seal(np.int64(7))).load() for _ in range(2))
    assert one == other and hash(one) == hash(other)


def test_a_named_tuple_is_a_tuple_meanwhile():
    sent = Both("a", np.array([1.5]))
    read = Reader(seal([sent])).load()[0]
    key, value = read
    assert key == "a" and type(value) is Sealed and hash(read[:1])
    again = pickle.loads(opening(read))
    assert type(again) is Both and again.value == sent.value


class Reduces:
    """Has itself pickled as it is told."""

    def __init__(self, *how):
        self.how = how

    def __reduce__(self):
        return self.how


@pytest.mark.parametrize(
    "how",
    [
        (os.getpid, ()),
        (eval, ("1",)),
        (Sealed, ("", 1, 2)),
        (Sealed, (b"", "", ""), (None, {"data": b"another"})),
        (Named, ("rdd", (1,)), {"number": 2}),
        (SealedTuple, ((1,), 2)),
    ],
)
def test_a_trusted_process_calls_and_changes_nothing_that_it_reads(how):
    with pytest.raises((pickle.UnpicklingError, TypeError, AttributeError)):
        Reader(pickle.dumps(Reduces(*how))).load()


def test_what_is_named_is_resolved_only_where_names_are_known():
    told = Reader(seal([np.int64(3)], lambda thing: Named("double", (2,)))).load()
    assert resolved(told, {"double": lambda n: 2 * n}) == [4]
    with pytest.raises(KeyError):
        resolved(told, {})
