"""Builds on what is there: mapPartitions throughout, k-means by reduce_by_key."""

from collections import defaultdict
from functools import partial

from distlab.dataflow import StorageLevel

POINTS = 10.0
HINT = ""


def combined(function, pairs):
    table = {}
    for key, value in pairs:
        if key in table:
            value = function(table[key], value)
        table[key] = value
    yield from table.items()


def reduce_by_key(rdd, function, partitions):
    combine = partial(combined, function)
    here = rdd.mapPartitions(combine, preservesPartitioning=True)
    return here.partitionBy(partitions).mapPartitions(combine, True)


def join_small(context, large, small):
    rows = defaultdict(list)
    for key, value in small:
        rows[key].append(value)
    table = context.broadcast(dict(rows))

    def looked_up(pairs):
        rows = table.value
        for key, value in pairs:
            for other in rows.get(key, ()):
                yield key, (value, other)

    return large.mapPartitions(looked_up, preservesPartitioning=True)


def kmeans(lines, parse, centres, steps):
    points = lines.map(parse).persist(StorageLevel.MEMORY_AND_DISK)
    for _ in range(steps):
        now = points.context.broadcast(centres)
        mine = points.map(lambda point: (nearest(point, now.value), (*point, 1)))
        sums = reduce_by_key(mine, lambda a, b: tuple(map(add, a, b)), 2).collectAsMap()
        means = {n: tuple(x / s[-1] for x in s[:-1]) for n, s in sums.items()}
        centres = [means.get(n, centre) for n, centre in enumerate(centres)]
    points.unpersist()
    return centres
