"""Whole partitions as arrays; sums by reduce, without a shuffle."""

import numpy as np

POINTS = 10.0
HINT = ""

MISSING = object()


def reduce_by_key(rdd, function, partitions):
    def combine(pairs):
        table = {}
        for key, value in pairs:
            before = table.get(key, MISSING)
            table[key] = value if before is MISSING else function(before, value)
        return list(table.items())

    together = rdd.mapPartitionsWithIndex(lambda _, pairs: combine(pairs))
    return together.partitionBy(partitions).mapPartitionsWithIndex(
        lambda _, pairs: combine(pairs), preservesPartitioning=True
    )


def join_small(context, large, small):
    rows = context.broadcast(small)

    def on(pairs):
        table = {}
        for key, value in rows.value:
            table.setdefault(key, []).append(value)
        return [(k, (v, x)) for k, v in pairs if k in table for x in table[k]]

    return large.mapPartitions(on)


def kmeans(lines, parse, centres, steps):
    centres = np.array(centres)
    points = lines.mapPartitions(
        lambda some: [np.array(list(map(parse, some)))]
    ).cache()
    for _ in range(steps):

        def sums(array):
            total = np.zeros((len(centres), centres.shape[1] + 1))
            for point in array:
                number = ((centres - point) ** 2).sum(axis=1).argmin()
                total[number] += [*point, 1]
            return total

        total = points.map(sums).reduce(add)
        count = total[:, -1:]
        centres = np.where(count > 0, total[:, :-1] / np.maximum(count, 1), centres)
    return centres
