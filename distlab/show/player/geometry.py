"""Coordinates on the canvas: nodes, tables of chunks, and curves between nodes.

The script of the page and the still pictures draw from these same numbers.
"""

import math
from dataclasses import dataclass

from distlab.show.player.rank_layout import WIDTH, places, shape_of
from distlab.show.player.svg import point

__all__ = ["Geometry"]

MOST_NAMED, MOST_TABLES, MOST_CHUNKS, MOST_WAYS = 64, 16, 16, 600


@dataclass
class Geometry:
    """The canvas of an animation, in its own units.

    nodes: (x, y) of each rank. radius: of a node. cell: width and height of a cell of
    a table, 0 without tables. tables: (x, y) of each table's left upper corner.
    ways: (sender, receiver) -> (x0, y0, cx, cy, x1, y1), a quadratic curve from edge
    to edge.
    """

    shape: str
    height: float
    nodes: list
    radius: float
    cell: tuple[float, float]
    tables: list
    ways: dict

    @classmethod
    def of(cls, pairs, world_size: int, chunks: int, shape: str = "auto") -> "Geometry":
        """Lay out `world_size` ranks with `chunks` chunks each, 0 for no tables.

        Raises: InvalidArgument if the shape is unknown, or does not fit these ranks.
        """
        n = world_size
        shape = shape_of(pairs, n) if shape == "auto" else shape
        height = (480 if n <= 4 else 450) if n <= 8 else 560
        nodes = places(shape, pairs, n, height)
        radius = 21 if n <= 6 else 17 if n <= 8 else max(1.5, min(14, 420 / n))
        shown = min(chunks, MOST_CHUNKS) if n <= MOST_TABLES else 0
        cell = (0.0, 0.0)
        if shown:
            # the more ranks there are, the closer they sit together
            room, most = (
                (128, 30.0) if n <= 4 else (116, 23.0) if n <= 8 else (60, 23.0)
            )
            wide = max(1.0, min(most, room / shown - 2))
            cell = (wide, 40.0 if n <= 4 else max(30.0, 3.0 * n + 3))
        tables = [
            _table(spot, nodes, shape, radius, shown * (cell[0] + 2) - 2, cell[1])
            for spot in nodes
        ] if shown else []  # fmt: skip
        few = len(pairs) <= MOST_WAYS
        ways = {pair: _way(pair, nodes, shape, radius) for pair in pairs if few}
        return cls(shape, height, nodes, radius, cell, tables, ways)

    @classmethod
    def fan(cls, leaves: int, chunks: int) -> "Geometry":
        """Lay out node 0 on top, and up to five others in a row below it."""
        radius, tall, high, low = 21, 40.0, 52.0, 300.0
        pitch = WIDTH / leaves
        xs = [(leaf + 0.5) * pitch for leaf in range(leaves)]
        nodes = [(WIDTH / 2, high), *((x, low) for x in xs)]
        wide = min(24.0, (min(200.0, pitch) - 12) / max(1, chunks) - 2)
        size = chunks * (wide + 2) - 2
        tables = [(WIDTH / 2 + radius + 12, high - tall / 2)]
        tables += [(x - size / 2, low + radius + 8) for x in xs]
        pairs = [
            pair for leaf in range(1, leaves + 1) for pair in ((0, leaf), (leaf, 0))
        ]
        ways = {pair: _way(pair, nodes, "fan", radius) for pair in pairs}
        cell = (wide, tall) if chunks else (0.0, 0.0)
        return cls("fan", 400, nodes, radius, cell, tables if chunks else [], ways)

    @classmethod
    def around(cls, pairs, nodes: int, homes: list[int]) -> "Geometry":
        """Lay out nodes on a circle, and outside each its clients.

        homes: for each client the node that it calls.
        """
        height, radius = 480, 21 if nodes <= 6 else 15
        middle, inner, outer = (WIDTH / 2, height / 2), 128.0, 212.0
        node_step = 2 * math.pi / max(1, nodes)
        spots = []
        for node in range(nodes):
            angle = node_step * node - math.pi / 2
            spots.append(_on(middle, inner, angle, 1.25))
        for client, home in enumerate(homes):
            own = [other for other, node in enumerate(homes) if node == home]
            step = min(0.45, 0.8 * node_step / len(own))
            apart = (own.index(client) - (len(own) - 1) / 2) * step
            spots.append(
                _on(middle, outer, node_step * home - math.pi / 2 + apart, 1.25)
            )
        few = len(pairs) <= MOST_WAYS
        ways = {pair: _way(pair, spots, "circle", radius) for pair in pairs if few}
        return cls("circle", height, spots, radius, (0.0, 0.0), [], ways)


def _on(middle, radius, angle, wide):
    x, y = wide * radius * math.cos(angle), radius * math.sin(angle)
    return middle[0] + x, middle[1] + y


def _table(spot, nodes, shape, radius, wide, tall):
    """Return the corner of a node's table: outwards, and to the right in a tree."""
    middle = WIDTH / 2, sum(y for _, y in nodes) / len(nodes)
    away = spot[0] - middle[0], spot[1] - middle[1]
    length = math.hypot(*away)
    if shape == "tree" and length > 1 and wide <= 60:
        away = (1.0, 0.0)
    elif length <= 1 or shape == "tree":
        away = (0.0, 1.0)  # the hub of a star has room below it
    else:
        away = away[0] / length, away[1] / length
    if shape in ("hypercube", "grid"):
        away = (0.0, 1.0 if away[1] > 0 else -1.0)
    reach = radius + 8 + abs(away[0]) * wide / 2 + abs(away[1]) * (tall / 2 + 4)
    x = spot[0] + away[0] * reach - wide / 2
    y = spot[1] + away[1] * reach - tall / 2 - (4 if away[1] < 0 else 2)
    return min(max(x, 2), WIDTH - wide - 2), max(y, 2)


def _way(pair, nodes, shape, radius):
    """Return the curve from one node's edge to another's; back curves bend away."""
    (x0, y0), (x1, y1) = nodes[pair[0]], nodes[pair[1]]
    across = y1 - y0, -(x1 - x0)  # to the left of the direction, on a ring outwards
    length = math.hypot(*across) or 1
    bend = min(0.1 * length, 28 if shape == "fan" else 14)
    if shape == "ring":
        node_step = math.pi / max(2, len(nodes))
        outer = length / 2 * math.tan(node_step / 2)  # from the chord to the circle
        clockwise = (pair[1] - pair[0]) % len(nodes) == 1
        bend = 2 * outer * (1 if clockwise else -0.55)
    cx = (x0 + x1) / 2 + across[0] / length * bend
    cy = (y0 + y1) / 2 + across[1] / length * bend
    return _trimmed((x0, y0, cx, cy, x1, y1), radius + 5, length)


def _trimmed(curve, by, length):
    """Return the part of a curve that leaves out `by` at both ends."""
    cut = min(0.4, by / length)
    points = [point(curve, t) for t in (cut, 1 - cut)]
    x0, y0, cx, cy, x1, y1 = curve
    (ax, ay), (bx, by_) = points
    # the control of a part of a quadratic curve is its blossom at both ends
    u, v = cut, 1 - cut
    a, b, c = (1 - u) * (1 - v), u * (1 - v) + v * (1 - u), u * v
    return ax, ay, a * x0 + b * cx + c * x1, a * y0 + b * cy + c * y1, bx, by_
