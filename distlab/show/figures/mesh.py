"""`mesh`: the ranks of a mesh, its groups along each dimension, and their bytes.

tp: 4 groups of 2      dp: 4 groups of 2      pp: 4 groups of 2
   4───5                  4   5                  4   5
  0───1 7                0│  1│7                0╱  1╱ 7       a line: one group
   6───7                  6   7                  6   7
  2───3                  2   3                  2╱  3╱
96 KiB a rank          12 KiB a rank          4 KiB a rank
"""

import math
from itertools import pairwise, product

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    page_width,
    points,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import GRID, INK, MUTED
from distlab.show.reading.alt_text import plural
from distlab.show.reading.trace_reading import trace_of
from distlab.trace import members_of, mesh_dimension_of
from distlab.units import readable_bytes

__all__ = ["mesh"]

_MOST_RANKS, _MOST_DIMENSIONS = 64, 3
_DEPTH = 0.42  # offset of the third dimension, as a share of the way to the next rank
_HEAD, _FOOT, _TALLEST, _LEAST = 0.5, 0.75, 2.6, 2.4  # inches
_EXAMPLE = "For example: mesh(report, pp=2, dp=2, tp=2)"


def mesh(run, *, title: str = "", **sizes: int) -> Picture:
    """Draw the mesh of a run, one panel for each dimension, with its groups and bytes.

    run: a `Trace` or an object that has one, such as a report, of ranks that made a
        `Mesh` (or torch's DeviceMesh) of these sizes, the last dimension innermost.
    The bar under a panel is the bytes that the busiest rank sent along that dimension.

    Raises: InvalidArgument if the sizes are not those of the run's world.
    """
    trace = trace_of(run)
    _check(trace, sizes)
    return Picture(lambda: _drawn(trace, sizes, title))


def _drawn(trace, sizes, title):
    places = _places(sizes)
    sent = {name: _sent(trace, name) for name in sizes}
    across = max(x for x, _ in places) - min(x for x, _ in places)
    down = max(y for _, y in places) - min(y for _, y in places)
    inner = page_width() - 2 * MARGIN
    columns = min(len(sizes), max(1, int(inner / _LEAST)))
    wide = inner / columns
    pitch = min((wide - 0.7) / max(1, across), _TALLEST / max(1, down), 0.9)
    high = _HEAD + pitch * down + 0.4 + _FOOT
    rows = -(-len(sizes) // columns)
    canvas = Canvas(high * rows, title=title)
    said = []
    for at, name in enumerate(sizes):
        left, above = MARGIN + at % columns * wide, canvas.top + at // columns * high
        spots = [(left + 0.25 + x * pitch, y * pitch) for x, y in places]
        top = above + _HEAD + 0.2 - min(y for _, y in spots)
        spots = [(x, y + top) for x, y in spots]
        groups = _groups(sizes, name)
        _draw(canvas.page, spots, groups, [_groups(sizes, other) for other in sizes])
        words = f"{plural(len(groups), 'group')} of {plural(sizes[name], 'rank')}"
        write(canvas.page, left, above + 0.15, name, size=10, bold=True)
        begin = left + width_of(name, 10, True) + 0.1
        write(canvas.page, begin, above + 0.15, words)
        described = _described(sent[name])
        share = max(sent[name]) / (max(map(max, sent.values())) or 1)
        _draw_bar(canvas.page, left, above + high - 0.42, wide, share)
        write(canvas.page, left, above + high - 0.18, described, color=MUTED)
        said.append(f"{name}: {words}, {described}.")
    return canvas.described(said)


def _draw(page, spots, groups, all_groups):
    """Draw every group thin, those of one dimension thick, and the ranks on them."""
    others = [line for found in all_groups for line in _lines(spots, found)]
    strokes(page, others, GRID, width=0.8)
    strokes(page, _lines(spots, groups), INK, width=4.5, zorder=2, gid="group")
    size = 15 if len(spots) <= 16 else 8
    for rank, (x, y) in enumerate(spots):
        points(page, [x], [y], rank, size=size, gid="rank")
        if len(spots) <= 16:
            look = {"size": 8.25, "bold": True, "align": "center", "color": "white"}
            write(page, x, y, str(rank), **look)


def _lines(spots, groups):
    return [(*spots[a], *spots[b]) for group in groups for a, b in pairwise(group)]


def _draw_bar(page, left, y, wide, share):
    for part, color, gid in ((1.0, GRID, "track"), (share, INK, "sent")):
        box = (left, y - 0.05, left + part * (wide - 0.5), y + 0.05)
        if part:
            bars(page, [box], color, gid=gid)


def _described(sent):
    least, most = min(sent), max(sent)
    if least == most:
        return f"{readable_bytes(most)} sent by each rank" if most else "nothing sent"
    return f"{readable_bytes(least)} to {readable_bytes(most)} sent by a rank"


def _sent(trace, name):
    """Return the bytes that each rank sent, or passed to torch, along a dimension."""
    sent = [0] * trace.world_size
    for event in trace.events:
        out = event.kind in ("send", "collective") and event.end is not None
        if out and mesh_dimension_of(event.group) == name:
            sent[event.rank] += event.bytes
    return sent


def _groups(sizes, name):
    """Return the ranks of each group along a dimension."""
    grid = list(product(*map(range, sizes.values())))
    at, groups = list(sizes).index(name), {}
    for rank, place in enumerate(grid):
        groups.setdefault((*place[:at], *place[at + 1 :]), []).append(rank)
    return list(groups.values())


def _places(sizes):
    """Return (x, y) of each rank, in steps: in a row, a grid, or a cube."""
    padded = [1] * (_MOST_DIMENSIONS - len(sizes)) + list(sizes.values())
    step = 1 + _DEPTH * (padded[0] - 1)
    return [
        (column * step + _DEPTH * layer, row * step - _DEPTH * layer)
        for layer, row, column in product(*map(range, padded))
    ]


def _check(trace, sizes):
    words = ", ".join(f"{name}={size!r}" for name, size in sizes.items())
    whole = all(type(size) is int and size > 0 for size in sizes.values())
    if not whole or math.prod(sizes.values()) != trace.world_size or not sizes:
        raise InvalidArgument(
            f"the sizes of a mesh multiply to the {trace.world_size} ranks of this "
            f"run, and got {words or 'none'}. {_EXAMPLE}"
        )
    if trace.world_size > _MOST_RANKS or len(sizes) > _MOST_DIMENSIONS:
        raise InvalidArgument(
            f"mesh draws up to {_MOST_RANKS} ranks in {_MOST_DIMENSIONS} dimensions, "
            f"and got {trace.world_size} ranks: {words}."
        )
    known = {(mesh_dimension_of(g), len(members_of(g, 0))) for g in trace.groups() if g}
    named = {name for name, _ in known}
    if not named & {*sizes}:
        raise InvalidArgument(
            f"this run used no mesh with the dimensions {', '.join(sizes)}"
            + (f", but {', '.join(sorted(named - {''}))}." if named - {""} else ".")
        )
