"""Layout of ranks: on a ring, as a star or tree, a hypercube, a grid, or in a circle.

The shape follows from the pairs of sender and receiver. Coordinates are in units of a
canvas that is `WIDTH` wide; y grows downwards. At the top, where there is one, is rank
0; in a tree the one rank that only sends, or only receives, if there is such a rank.
"""

import math
from collections import defaultdict, deque

from distlab.errors import InvalidArgument

__all__ = ["SHAPES", "WIDTH", "places", "shape_of"]

WIDTH = 600
SHAPES = ("ring", "tree", "hypercube", "grid", "circle")


def shape_of(pairs: set[tuple[int, int]], world_size: int) -> str:
    """Return the shape that pairs of (sender, receiver) form, "circle" if none."""
    n, links = world_size, {(min(pair), max(pair)) for pair in pairs}
    if not links or all((b - a) in (1, n - 1) for a, b in links):
        return "ring"
    if _levels(links, n, 0):
        return "tree"
    if n & (n - 1) == 0 and n <= 16 and all((a ^ b).bit_count() < 2 for a, b in links):
        return "hypercube"
    return "grid" if _columns(links, n) else "circle"


def places(shape: str, pairs, world_size: int, height: float) -> list:
    """Return (x, y) of each rank on a canvas of WIDTH by `height`.

    Raises: InvalidArgument for a shape that is not one of SHAPES, or that these ranks
    do not form.
    """
    n, links = world_size, {(min(pair), max(pair)) for pair in pairs}
    radius = (0.29 if n <= 4 else 0.335 if n <= 8 else 0.36) * height
    center = WIDTH / 2, height / 2
    if shape in ("ring", "circle"):
        spots = _round(n, center, radius)
        seats = _ring_order(pairs, n) if shape == "circle" else range(n)
        return [spots[seats.index(rank)] for rank in range(n)]
    if shape == "tree":
        root = _root(pairs)
        levels = _levels(links, n, root)
        if levels:
            return _tree(levels, root, center, radius, height)
        raise InvalidArgument(
            "these ranks form no tree: their messages close a circle, or leave a rank "
            'out. Leave shape="auto", which takes what fits.'
        )
    if shape == "hypercube":
        if n & (n - 1) or n > 16:
            raise InvalidArgument(
                f"a hypercube has 2, 4, 8 or 16 ranks here, and this run has {n}. "
                'Leave shape="auto", which takes what fits.'
            )
        return _cube(n, center, radius)
    if shape == "grid":
        return _grid(n, _columns(links, n) or _squarest(n), center, height)
    raise InvalidArgument(
        f'shape is "auto" or one of {", ".join(SHAPES)}, and got {shape!r}.'
    )


def _round(n, center, radius):
    angles = [2 * math.pi * rank / n - math.pi / 2 for rank in range(n)]
    return [_on_circle(center, radius, angle) for angle in angles]


def _ring_order(pairs, n):
    """Return the ranks in the order of a ring, then the others; 0 to n-1 if no ring."""
    to = dict(pairs)
    order = [min(to, default=0)]
    while order[-1] in to and to[order[-1]] not in order:
        order.append(to[order[-1]])
    closed = len(order) == len(to) == len(pairs) and to.get(order[-1]) == order[0]
    return [*order, *(r for r in range(n) if r not in to)] if closed else range(n)


def _on_circle(center, radius, angle):
    return center[0] + radius * math.cos(angle), center[1] + radius * math.sin(angle)


def _root(pairs):
    """Return the rank that alone only sends, or alone only receives, or else 0."""
    senders, receivers = ({pair[side] for pair in pairs} for side in (0, 1))
    ends = [senders - receivers, receivers - senders]
    alone = [end.pop() for end in ends if len(end) == 1]
    return alone[0] if len(alone) == 1 else 0


def _levels(links, n, root):
    """Return the depth and parent of each rank, or nothing if it is no tree."""
    if len(links) != n - 1 or n < 3:
        return {}
    near = defaultdict(list)
    for a, b in sorted(links):
        near[a].append(b)
        near[b].append(a)
    found, waiting = {root: (0, None)}, deque([root])
    while waiting:
        rank = waiting.popleft()
        for other in near[rank]:
            if other not in found:
                found[other] = found[rank][0] + 1, rank
                waiting.append(other)
    return found if len(found) == n else {}


def _tree(levels, root, center, radius, height):
    """Lay a tree out from the top; one of depth one is a star around its root."""
    n, depth = len(levels), max(level for level, _ in levels.values())
    if depth == 1:
        first = math.pi / 2 + math.pi / (n - 1)
        leaves = [first + 2 * math.pi * leaf / (n - 1) for leaf in range(n - 1)]
        spots = [_on_circle(center, radius, angle) for angle in leaves]
        return [*spots[:root], center, *spots[root:]]
    children = defaultdict(list)
    for rank in sorted(levels):
        children[levels[rank][1]].append(rank)
    spread, next_leaf = {}, iter(range(n))

    def settle(rank):
        under = [settle(child) for child in reversed(children[rank])]
        spread[rank] = sum(under) / len(under) if under else next(next_leaf)
        return spread[rank]

    settle(root)
    last = max(spread.values()) or 1
    gap = (height - 130) / depth
    return [
        (70 + (WIDTH - 140) * spread[rank] / last, 50 + gap * levels[rank][0])
        for rank in range(n)
    ]


def _cube(n, center, radius):
    """Draw bit 0 to the right, bit 1 downwards, bits 2 and 3 as an offset inwards."""
    side = 1.15 * radius
    steps = [(side, 0), (0, side), (0.52 * side, -0.42 * side), (1.62 * side, 0.1)]
    if n == 16:
        steps = [(0.62 * x, 0.62 * y) for x, y in steps[:3]] + [(1.35 * side, 0)]
    spots = [
        tuple(sum(step[axis] * (rank >> bit & 1) for bit, step in enumerate(steps))
              for axis in (0, 1))
        for rank in range(n)
    ]  # fmt: skip
    middle = [
        (min(s[axis] for s in spots) + max(s[axis] for s in spots)) / 2
        for axis in (0, 1)
    ]
    return [(center[0] + x - middle[0], center[1] + y - middle[1]) for x, y in spots]


def _columns(links, n):
    """Return the width of a grid whose rows and columns hold every link, or 0."""
    for wide in sorted(range(2, n // 2 + 1), key=lambda wide: abs(wide - n / wide)):
        if n % wide:
            continue
        along = [a // wide == b // wide for a, b in links]
        across = [a % wide == b % wide for a, b in links]
        fits = all(x or y for x, y in zip(along, across, strict=True))
        if fits and any(along) and any(across):
            return wide
    return 0


def _squarest(n):
    return min(
        (wide for wide in range(1, n + 1) if n % wide == 0),
        key=lambda wide: abs(wide - n / wide),
    )


def _grid(n, wide, center, height):
    tall = n // wide
    gap_x = (WIDTH - 200) / max(1, wide - 1)
    gap_y = (height - 150) / max(1, tall - 1)
    return [
        (
            center[0] + (rank % wide - (wide - 1) / 2) * gap_x,
            center[1] + (rank // wide - (tall - 1) / 2) * gap_y,
        )
        for rank in range(n)
    ]
