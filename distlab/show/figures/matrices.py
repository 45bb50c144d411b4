"""`matrices`: products of matrices sharded over ranks, and the bytes between ranks.

   x         W1             y         W2                       y
  ┌──┐     ┌──┬──┐        ┌──┬──┐   ┌─────┐              ┌──┐
  │  │  ·  │0 │1 │  GELU  │0 │1 │ · │  0  │ = 2 sums  g  │  │     a cut matrix: each
  └──┘     │  │  │        └──┴──┘   ├─────┤  ───────────▶└──┘     rank has one part
each rank  └──┴──┘                  │  1  │   64 KiB
                                    └─────┘
"""

import itertools

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import MARGIN, Canvas, bars, page_width, strokes, write
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import literal, width_of
from distlab.show.canvas.theme import GRID, INK, MUTED, PAPER, rank_color, tint

__all__ = ["matrices"]

_CUTS = {
    "": "whole on each rank",
    "columns": "columns cut",
    "rows": "rows cut",
    "sums": "a partial sum on each rank",
}
_GAP, _LEAST, _TALL = 0.16, 0.3, 1.9  # inches
_NAME, _SMALL = 9.5, 8.25
_EXAMPLE = (
    'For example: matrices([("x", 64, 32, ""), "·", ("W", 32, 128, "columns")], 4)'
)


def matrices(steps, ranks: int, *, title: str = "") -> Picture:
    """Draw matrices in a row, to scale, each with the shard that every rank has of it.

    steps: (name, rows, columns, cut) for a matrix, cut being "columns", "rows", "sums"
        for one that is still to be summed, or "" for one that each rank has whole; or
        the text between two matrices, of which a second line stands below.

    Raises: InvalidArgument naming the step that is neither.
    """
    steps = [_checked(step) for step in steps]
    if not steps or type(ranks) is not int or not 0 < ranks <= 16:
        raise InvalidArgument(f"steps are drawn for 1 to 16 ranks. {_EXAMPLE}")
    return Picture(lambda: _drawn(steps, ranks, title))


def _drawn(steps, ranks, title):
    lines, scale = _lines(steps)
    rows = [step[1] for step in steps if isinstance(step, tuple)]
    tall = max([_LEAST, *(count * scale for count in rows)])
    line = tall + 0.35 + 0.5
    canvas = Canvas(line * len(lines), title=title)
    middle, x, said = canvas.top + 0.35 + tall / 2, MARGIN, []
    ends = list(itertools.accumulate(map(len, lines)))
    for at, step in enumerate(steps):
        if at in ends:
            middle, x = middle + line, MARGIN
        if isinstance(step, str):
            _between(canvas.page, x, middle, step)
            x += _wide(step) + _GAP
            said.append(step.replace("\n", ", "))
        else:
            name, rows, columns, cut = step
            wide, tall = (max(_LEAST, side * scale) for side in (columns, rows))
            _draw(
                canvas.page,
                (x, middle - tall / 2, x + wide, middle + tall / 2),
                step,
                ranks,
            )
            x += wide + _GAP
            said.append(f"{name} of {rows} by {columns}, {_CUTS[cut]}")
    return canvas.described([f"On {ranks} ranks: {'; '.join(said)}."])


def _lines(steps):
    """Return the steps in as few lines as the page has room for, and their scale."""
    longest = max((step[1] for step in steps if isinstance(step, tuple)), default=1)
    for count in range(1, len(steps) + 1):
        each = -(-len(steps) // count)
        lines = [steps[at : at + each] for at in range(0, len(steps), each)]
        scales = [_scale(line, longest) for line in lines]
        if min(scales) > 0:
            break
    return lines, max(min(scales), 1e-9)


def _scale(steps, longest):
    """Return the inches for a column of steps that share a line; 0 without room."""
    columns = [step[2] for step in steps if isinstance(step, tuple)]
    words = sum(_wide(step) for step in steps if isinstance(step, str))
    room = page_width() - 2 * MARGIN - words - _GAP * (len(steps) - 1)
    if room < _LEAST * len(columns):
        return 0
    scale = min(room / max(1, sum(columns)), _TALL / longest)
    while sum(max(_LEAST, count * scale) for count in columns) > room:
        scale *= 0.98
    return scale


def _draw(page, box, step, ranks):
    left, top, right, bottom = box
    name, rows, columns, cut = step
    if cut == "sums":
        for rank in reversed(range(min(ranks, 4))):
            away = 0.05 * rank
            part = (left + away, top + away, right - 0.15 + away, bottom - 0.15 + away)
            bars(page, [part], tint(rank_color(rank), 0.5), edge=PAPER, gid="part")
    for rank in range(ranks if cut in ("columns", "rows") else 0):
        begin, end = rank / ranks, (rank + 1) / ranks
        part = (left, top + begin * (bottom - top), right, top + end * (bottom - top))
        if cut == "columns":
            wide = right - left
            part = (left + begin * wide, top, left + end * wide, bottom)
        bars(page, [part], tint(rank_color(rank), 0.7), edge=PAPER, gid="part")
        if min(part[2] - part[0], part[3] - part[1]) > 0.14:
            at = (part[0] + part[2]) / 2, (part[1] + part[3]) / 2
            on = rank_color(rank)
            write(page, *at, str(rank), size=_SMALL, align="center", on=on)
    if not cut:
        bars(page, [box], GRID, edge=MUTED, gid="whole")
    x = (left + right) / 2
    write(page, x, top - 0.16, name, size=_NAME, bold=True, align="center")
    below = {"size": _SMALL, "color": MUTED, "align": "center"}
    write(page, x, bottom + 0.16, f"{rows}×{columns}", **below)


def _between(page, x, middle, words):
    first, _, second = words.partition("\n")
    at = x + _wide(words) / 2
    write(page, at, middle - (0.1 if second else 0), first, size=_NAME, align="center")
    if second:
        line = (x, middle + 0.03, x + _wide(words), middle + 0.03)
        strokes(page, [line], INK, width=1.0)
        small = {"size": _SMALL, "color": MUTED, "align": "center"}
        write(page, at, middle + 0.17, second, **small)


def _wide(words):
    return max(width_of(line, _NAME) for line in words.split("\n"))


def _checked(step):
    if isinstance(step, str):
        return literal(step.replace("\n", "⏎"), 60).replace("⏎", "\n")
    try:
        name, rows, columns, cut = step
        fine = cut in _CUTS and int(rows) > 0 and int(columns) > 0
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise InvalidArgument(f"{step!r} is no matrix, and no words. {_EXAMPLE}")
    return literal(name, 20), int(rows), int(columns), cut
