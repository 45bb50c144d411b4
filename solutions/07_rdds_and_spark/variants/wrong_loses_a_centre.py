"""Returns only those centres to which a point belongs."""

POINTS = 7.0
HINT = "Such a centre stays where it is"


def kmeans(lines, parse, centres, steps):
    def added(one, other):
        return tuple(map(add, one[0], other[0])), one[1] + other[1]

    points = lines.map(parse).cache()
    for _ in range(steps):
        mine = points.map(lambda point: (nearest(point, centres), (point, 1)))
        sums = mine.reduceByKey(added).sortByKey().values().collect()
        centres = [tuple(x / count for x in total) for total, count in sums]
    return centres
