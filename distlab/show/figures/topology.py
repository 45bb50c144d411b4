"""`topology`: the ranks that average with each other, and how fast that mixes.

ring   0      complete   0
    3     1           3 ─┼─ 1      a line: each receives from the other
       2                 2         an arrow: from sender to receiver
"""

import math

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    arrow,
    page_width,
    points,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import readable_number
from distlab.show.canvas.text import fitted, literal
from distlab.show.canvas.theme import MUTED, rank_color, tint
from distlab.show.reading.alt_text import plural

__all__ = ["topology"]

_COLUMNS, _MOST, _MOST_RANKS, _MOST_ARROWS = 3, 6, 256, 100
_LEAST, _RADIUS, _NUMBERS = (
    2.6,
    0.98,
    1.14,
)  # inches: of the circle of ranks, of their numbers
_HEAD, _FOOT, _NAME = 0.3, 0.95, 9.5
_LEFT, _DOUBLINGS, _NEVER = 0.01, 20, "over 1 % after a million averages"
_ARROWS = "arrow: from the rank that is heard, in its colour (over 100: without heads)"
_EXAMPLE = 'For example: topology({"ring": ring_graph(8)})'


def topology(graphs, *, title: str = "") -> Picture:
    """Draw up to 6 graphs as ranks on a circle, with how fast each of them mixes.

    graphs: name -> mixing matrix W, [n, n], from 2 to 256 ranks: rank i receives from
    rank j where W[i, j] is not 0, and each row and each column sums to 1.
    Under each: the distance is that from the mean of all, where it shrinks least.

    Raises: InvalidArgument naming the first invalid graph.
    """
    checked = _checked(graphs)
    graphs = [(name, matrix, _described(matrix)) for name, matrix in checked]
    return Picture(lambda: _drawn(graphs, title))


def _drawn(graphs, title):
    inner = page_width() - 2 * MARGIN
    columns = min(_COLUMNS, len(graphs), max(1, int(inner / _LEAST)))
    one_way = any((matrix.T[matrix != 0] == 0).any() for _, matrix, _ in graphs)
    key = [(None, "line: both ranks hear each other"), (None, _ARROWS)][: 1 + one_way]
    pitch = _HEAD + 2 * _RADIUS + _FOOT
    canvas = Canvas(pitch * math.ceil(len(graphs) / columns), title=title, key=key)
    wide = inner / columns
    said = []
    for at, (name, matrix, described) in enumerate(graphs):
        row, column = divmod(at, columns)
        x = MARGIN + (column + 0.5) * wide
        y = canvas.top + row * pitch + _HEAD + _RADIUS
        _draw(canvas.page, x, y, matrix)
        y += _RADIUS + 0.4
        words = fitted(name, wide - 0.1, _NAME, bold=True)
        write(canvas.page, x, y, words, size=_NAME, bold=True, align="center")
        for line, words in enumerate(("; ".join(described[:2]), described[2])):
            write(
                canvas.page, x, y + 0.2 + line / 6, words, color=MUTED, align="center"
            )
        said.append(f"{name}: {plural(len(matrix), 'rank')}; {'; '.join(described)}.")
    return canvas.described(said)


def _draw(page, x, y, matrix):
    """Draw one graph, rank 0 on top and the others clockwise."""
    n = len(matrix)
    angles = [math.tau * rank / n for rank in range(n)]
    turns = [(math.sin(angle), -math.cos(angle)) for angle in angles]
    places = [(x + _RADIUS * dx, y + _RADIUS * dy) for dx, dy in turns]
    size = min(9.0, 0.6 * 72 * math.tau * _RADIUS / n)
    hears = [(i, j) for i in range(n) for j in range(n) if i != j and matrix[i, j]]
    mutual = [(i, j) for i, j in hears if i < j and matrix[j, i]]
    one_way = [(i, j) for i, j in hears if not matrix[j, i]]
    width = max(0.25, min(0.9, 60 / (1 + len(mutual) + len(one_way))))
    lines = [(*places[j], *places[i]) for i, j in mutual]
    strokes(page, lines, tint(MUTED, 0.6), width=width, gid="line")
    lines = [(*places[j], *places[i]) for i, j in one_way]
    colors = [rank_color(j) for _, j in one_way]
    if len(one_way) > _MOST_ARROWS:
        strokes(page, lines, colors, width=width, gid="arrow")
        lines = []
    for (x0, y0, x1, y1), color in zip(lines, colors, strict=False):
        short = (size / 72 / 2 + 0.015) / math.hypot(x1 - x0, y1 - y0)
        arrow(page, (x0, y0), (x1 + short * (x0 - x1), y1 + short * (y0 - y1)), color)
    for rank, (dx, dy) in enumerate(turns):
        points(page, *([at] for at in places[rank]), rank, size=size, gid="rank")
        if rank % math.ceil(n / 32) == 0:
            at = x + _NUMBERS * dx, y + _NUMBERS * dy
            write(page, *at, f"{rank}", color=MUTED, align="center")


def _described(matrix):
    """Return each rank's in-neighbours, the spectral gap, and the mixing, in words."""
    import numpy as np

    heard = (matrix != 0).sum(axis=1) - (matrix.diagonal() != 0)
    few, many = heard.min(), heard.max()
    gap = 1 - np.sort(np.abs(np.linalg.eigvals(matrix)))[-2]
    times = _averages(matrix - 1 / len(matrix))
    after = f"at most 1 % after {plural(times, 'average')}" if times else _NEVER
    return (
        f"each hears {few}" + (f" to {many}" if many > few else ""),
        f"spectral gap {readable_number(float(f'{round(gap, 9):.2g}'))}",
        f"distance {after}",
    )


def _averages(rest):
    """Return the averages until no distance is over 1 %; None if over a million.

    rest: W - J/n. Its power t maps a distance to the rest after t averages. The largest
    singular value of that never grows with t, so that the count is found by bisection.
    """
    import numpy as np

    powers = [rest]  # 1, 2, 4, ...
    while np.linalg.norm(powers[-1], 2) > _LEFT:
        if len(powers) > _DOUBLINGS:
            return None
        powers.append(powers[-1] @ powers[-1])
    far, last = 0, np.eye(len(rest))
    for doubling in reversed(range(len(powers) - 1)):
        further = last @ powers[doubling]
        if np.linalg.norm(further, 2) > _LEFT:
            far, last = far + 2**doubling, further
    return far + 1


def _checked(graphs):
    """Return pairs of a name and a matrix.

    Raises: InvalidArgument.
    """
    import numpy as np

    if not hasattr(graphs, "items") or not 0 < len(graphs) <= _MOST:
        raise InvalidArgument(
            f"graphs is a dict from a name to a matrix, at most {_MOST}. {_EXAMPLE}"
        )
    checked = []
    for name, given in graphs.items():
        try:
            matrix = np.array(given, dtype=float, ndmin=2)
        except (RuntimeError, TypeError, ValueError):  # the first from a tensor
            matrix = np.zeros((0, 0))
        n = len(matrix)
        fine = matrix.shape == (n, n) and 2 <= n <= _MOST_RANKS and (matrix >= 0).all()
        if not fine or not all(np.allclose(matrix.sum(axis), 1) for axis in (0, 1)):
            raise InvalidArgument(
                f"graphs[{name!r}] is a square matrix of 2 to {_MOST_RANKS} ranks, no "
                f"number below 0, and each row and each column sums to 1. {_EXAMPLE}"
            )
        checked.append((literal(name), matrix))
    return checked
