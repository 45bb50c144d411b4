"""A partition function of its own, for which all keys are alike."""

POINTS = 6.0
HINT = "place a key if nobody tells it"


def reduce_by_key(rdd, function, partitions):
    def combine(pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table[key], value) if key in table else value
        return table.items()

    placed = rdd.mapPartitions(combine).partitionBy(partitions, lambda key: 0)
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
