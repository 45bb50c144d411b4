"""The engine's groupByKey, and then function on each list."""

from functools import reduce

POINTS = 6.0
HINT = "groupByKey sends every value as it is"


def reduce_by_key(rdd, function, partitions):
    return rdd.groupByKey(partitions).mapValues(lambda values: reduce(function, values))


def join_small(context, large, small):
    table = {}
    for key, value in small:
        table.setdefault(key, []).append(value)
    sent = context.broadcast(table)
    return large.flatMap(
        lambda pair: [(pair[0], (pair[1], x)) for x in sent.value.get(pair[0], [])]
    )


def kmeans(lines, parse, centres, steps):
    def added(one, other):
        return tuple(map(add, one[0], other[0])), one[1] + other[1]

    points = lines.map(parse).cache()
    for _ in range(steps):
        mine = points.map(lambda point: (nearest(point, centres), (point, 1)))
        sums = mine.reduceByKey(added).collectAsMap()
        moved = list(centres)
        for number, (total, count) in sums.items():
            moved[number] = tuple(x / count for x in total)
        centres = moved
    return centres
