"""Halves the sum of two means."""

POINTS = 7.0
HINT = "A mean of means is another number"


def kmeans(lines, parse, centres, steps):
    def between(one, other):
        return tuple((a + b) / 2 for a, b in zip(one, other, strict=True))

    points = lines.map(parse).cache()
    for _ in range(steps):
        mine = points.map(lambda point: (nearest(point, centres), point))
        means = mine.reduceByKey(between).collectAsMap()
        centres = [means.get(number, c) for number, c in enumerate(centres)]
    return centres
