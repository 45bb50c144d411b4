"""Halves the sum of two means."""

POINTS = 7.0
HINT = "A mean of means is another number"


def reduce_by_key(rdd, function, partitions):
    def combine(pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table[key], value) if key in table else value
        return table.items()

    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


def join_small(context, large, small):
    table = {}
    for key, value in small:
        table.setdefault(key, []).append(value)
    sent = context.broadcast(table)
    return large.flatMap(
        lambda pair: [(pair[0], (pair[1], x)) for x in sent.value.get(pair[0], [])]
    )


def kmeans(lines, parse, centres, steps):
    def between(one, other):
        return tuple((a + b) / 2 for a, b in zip(one, other, strict=True))

    points = lines.map(parse).cache()
    for _ in range(steps):
        mine = points.map(lambda point: (nearest(point, centres), point))
        means = mine.reduceByKey(between).collectAsMap()
        centres = [means.get(number, c) for number, c in enumerate(centres)]
    return centres
