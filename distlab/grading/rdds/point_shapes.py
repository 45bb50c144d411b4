"""Points for the checks of k-means, and what one process makes of them."""

from distlab.grading.salt import salted

__all__ = [
    "Centres",
    "lloyd",
    "lloyd_by_halves",
    "lloyd_by_parts",
    "points_of",
    "shape",
]

Centres = list[tuple[float, ...]]


def shape(name: str) -> dict:
    """Return parts, the lines of each partition, centres and steps of a case.

    killed: whether it is tried once more, with a worker killed between two steps.
    """
    rng = salted(name)
    dimensions, clusters, steps, sizes = _SHAPES[name]
    middles = [_point(rng, dimensions, 10) for _ in range(clusters)]
    parts = [[_line(rng, rng.choice(middles)) for _ in range(n)] for n in sizes]
    centres = [_point(rng, dimensions, 10) for _ in range(clusters)]
    if "far" in name:
        centres[1] = tuple(1000.0 for _ in range(dimensions))
    return {
        "parts": parts,
        "centres": centres,
        "steps": steps,
        "killed": "killed" in name,
    }


# name -> dimensions, clusters, steps, how many points each partition has
_SHAPES = {
    "three clusters": (2, 3, 4, [450, 350]),
    "a centre far from all points": (2, 4, 3, [200, 0, 250, 150]),
    "a worker killed between two steps": (2, 3, 4, [200, 150, 250, 100]),
    "no step": (2, 3, 0, [20, 20]),
    "points in three dimensions": (3, 5, 6, [150, 250, 100]),
    "one cluster": (2, 1, 2, [40, 1, 60, 30]),
    "a centre far off and a worker killed": (3, 4, 6, [200, 100, 150, 300, 120, 80]),
}


def _point(rng, dimensions, wide):
    return tuple(rng.uniform(-wide, wide) for _ in range(dimensions))


def _line(rng, middle):
    return " ".join(repr(rng.gauss(x, 3.0)) for x in middle)


def points_of(parts: list[list[str]]) -> list[Centres]:
    """Return the points of each partition."""
    return [[tuple(map(float, line.split())) for line in part] for part in parts]


def lloyd(parts: list[Centres], centres: Centres, steps: int) -> Centres:
    """Return the centres after some steps of k-means, each the mean of its points."""
    return _steps(parts, centres, steps, _mean)


def lloyd_by_parts(parts: list[Centres], centres: Centres, steps: int) -> Centres:
    """Return the same if each partition's mean counts alike, which is wrong."""
    return _steps(parts, centres, steps, lambda own: _mean([[_mean([p]) for p in own]]))


def lloyd_by_halves(parts: list[Centres], centres: Centres, steps: int) -> Centres:
    """Return the same if two means are halved, one after the other, which is wrong."""
    return _steps(parts, centres, steps, lambda own: _halved([_halved(p) for p in own]))


def _steps(parts, centres, steps, middle):
    for _ in range(steps):
        mine = [[] for _ in centres]  # for each cluster its points in each partition
        for part in parts:
            own = [[] for _ in centres]
            for point in part:
                own[_nearest(point, centres)].append(point)
            for cluster, points in zip(mine, own, strict=True):
                cluster += [points] if points else []
        centres = [
            middle(own) if own else centre
            for own, centre in zip(mine, centres, strict=True)
        ]
    return [tuple(centre) for centre in centres]


def _nearest(point, centres):
    far = [sum((a - b) ** 2 for a, b in zip(point, c, strict=True)) for c in centres]
    return far.index(min(far))


def _mean(own):
    points = [point for part in own for point in part]
    return tuple(sum(column) / len(points) for column in zip(*points, strict=True))


def _halved(points):
    first, *others = points
    for point in others:
        first = tuple((a + b) / 2 for a, b in zip(first, point, strict=True))
    return first
