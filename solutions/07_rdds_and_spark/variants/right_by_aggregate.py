"""Sums and counts as one dictionary for each partition."""

POINTS = 10.0
HINT = ""
REPLACE = {
    "each)) for each": "x)) for x",
}


def kmeans(lines, parse, centres, steps):
    points = lines.map(parse)
    points.cache().count()
    for _ in range(steps):

        def plus(sums, point):
            number = nearest(point, centres)
            sums[number] = list(map(add, sums.get(number, [0] * 9), [*point, 1]))
            return sums

        def both(sums, others):
            for number, other in others.items():
                sums[number] = list(map(add, sums.get(number, [0] * 9), other))
            return sums

        sums = points.aggregate({}, plus, both)
        means = {n: [x / s[-1] for x in s[:-1]] for n, s in sums.items()}
        centres = [tuple(means.get(n, c)) for n, c in enumerate(centres)]
    return centres
