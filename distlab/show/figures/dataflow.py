"""`dataflow`: the input, shuffle and output of one small job, pair by pair.

split 0     map 0             reduce 0           part 0
┌───────┐   ┌────────┐        ┌────────────┐     ┌───────┐
│the cat│ ─▶│ cat  1 │ ─────▶ │ cat  [1, 1]│ ──▶ │ cat  2│
│sat    │   ├────────┤ ─╮     └────────────┘     └───────┘
└───────┘   │ the  1 │  ╰───▶ reduce 1 ...
            └────────┘
"""

from itertools import groupby
from operator import itemgetter

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    arrow,
    bars,
    is_narrow,
    page_width,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import fitted, literal, wrapped
from distlab.show.canvas.theme import GRID, MUTED, PAPER, rank_color, tint
from distlab.show.reading.alt_text import plural

__all__ = ["dataflow"]

_SIZE, _LINE, _PAD, _GAP, _MOST, _APART = 9, 0.19, 0.09, 0.34, 10, 0.1
_SHARES, _GUTTER = (1.85, 1.75, 2.1, 1.75), 0.065  # of the page
_HEADS = ("input splits", "map tasks", "reduce tasks", "output")
_EXAMPLE = (
    'dataflow(["the cat"], runs=[[[("cat", 1)], [("the", 1)]]], '
    'parts=[[("cat", 1)], [("the", 1)]])'
)


def dataflow(splits, runs, parts, title: str = "") -> Picture:
    """Draw the data of one job: splits, map output, reduce input and output.

    splits: the text of each map task. runs: for each map task its pairs, a list for
        each reduce task. parts: for each reduce task the pairs that it writes.
    Raises: InvalidArgument for lists that do not fit each other.
    """
    data = _checked(splits, runs, parts)
    return Picture(lambda: _Dataflow(*data).canvas(literal(title)))


class _Dataflow:
    """Four columns of boxes and the arrows between them, in inches on the page."""

    def __init__(self, splits, runs, parts):
        inner = page_width() - 2 * MARGIN
        self.between, self.stacked = _GUTTER * inner, is_narrow()
        room = inner - (1 if self.stacked else 3) * self.between
        shares = [1, 1, 1, 1] if self.stacked else _SHARES
        scale = room / sum(shares[: 2 if self.stacked else 4])
        self.widths = [share * scale for share in shares]
        self.lefts = [
            MARGIN
            + sum(self.widths[: at % 2 if self.stacked else at])
            + (at % 2 if self.stacked else at) * self.between
            for at in range(4)
        ]
        self.splits = [wrapped(text, self.widths[0] - 0.2, _SIZE) for text in splits]
        self.runs = [[_lines(run) for run in row] for row in runs]
        self.merged = [_merged([row[r] for row in runs]) for r in range(len(parts))]
        self.groups = [_lines(groups) for groups in self.merged]
        self.parts = [_lines(part) for part in parts]
        self.pairs = sum(len(run) for row in runs for run in row)
        self.heights = [
            max(_high(text), sum(map(_high, row)))
            for text, row in zip(self.splits, self.runs, strict=True)
        ]
        both = zip(self.groups, self.parts, strict=True)
        self.lower = [max(map(_high, sides)) for sides in both]

    def canvas(self, title):
        maps, reduces = len(self.runs), len(self.parts)
        head = f"{plural(maps, 'map task')}, {plural(reduces, 'reduce task')}; the "
        head += f"shuffle moves {plural(self.pairs, 'pair')}."
        rooms = _room(self.heights), _room(self.lower)
        if self.stacked:
            head += " A colour: the reduce task that a pair goes to."
        room = sum(rooms) + 0.8 if self.stacked else max(rooms) + 0.4
        canvas = Canvas(room, title=title, subtitle=head)
        self.page, top = canvas.page, canvas.top + 0.4
        below = top + rooms[0] + 0.4 if self.stacked else top
        for at, (x, text) in enumerate(zip(self.lefts, _HEADS, strict=True)):
            y = (top if at < 2 else below) - 0.2
            write(self.page, x, y, text, color=MUTED, bold=True)
        if self.between > 0.5:
            x = self.lefts[2] - self.between / 2
            write(self.page, x, top - 0.2, "shuffle", color=MUTED, align="center")
        tall = room - 0.4
        into = self._draw_reduces(below, rooms[1] if self.stacked else tall)
        self._draw_maps(top, rooms[0] if self.stacked else tall, into)
        return canvas.described([head, *self._described()])

    def _draw_maps(self, top, room, into):
        y = top + (room - _room(self.heights)) / 2 + _GAP
        for m, (text, row) in enumerate(zip(self.splits, self.runs, strict=True)):
            self._name(1, y, f"map {m}")
            self._name(0, y, f"split {m}")
            middle = self._box(0, y, text, PAPER)
            start = y
            for r, lines in enumerate(row):
                color = rank_color(r)
                at = self._box(1, start, lines, tint(color, 0.18), color)
                start += _high(lines)
                if (
                    lines and not self.stacked
                ):  # arrows into one reduce end side by side
                    apart = _APART * (m - (len(self.runs) - 1) / 2)
                    ends = (self.lefts[2] - 0.04, into[r] + apart)
                    begin = (self.lefts[1] + self.widths[1], at)
                    arrow(self.page, begin, ends, color, width=1.2)
            ends = (self.lefts[1] - 0.04, middle)
            arrow(self.page, (self.lefts[0] + self.widths[0], middle), ends, MUTED)
            y += self.heights[m] + _GAP

    def _draw_reduces(self, top, room):
        """Draw the right side; return the height of the arrows into each reduce."""
        y, into = top + (room - _room(self.lower)) / 2 + _GAP, []
        for r, (groups, part) in enumerate(zip(self.groups, self.parts, strict=True)):
            color = rank_color(r)
            self._name(2, y, f"reduce {r}")
            self._name(3, y, f"part {r}")
            into.append(self._box(2, y, groups, tint(color, 0.18), color))
            at = self._box(3, y, part, tint(color, 0.4), color)
            start = self.lefts[2] + self.widths[2]
            arrow(self.page, (start, at), (self.lefts[3] - 0.04, at), color, width=1.2)
            y += self.lower[r] + _GAP
        return into

    def _name(self, column, y, text):
        write(self.page, self.lefts[column], y - 0.1, text, color=MUTED)

    def _box(self, column, y, lines, fill, edge=GRID):
        """Draw a box with lines of text; return the height of its middle."""
        left, wide, high = self.lefts[column], self.widths[column], _high(lines)
        bars(self.page, [(left, y, left + wide, y + high)], fill, edge=edge, gid="box")
        for at, line in enumerate(lines):
            text = fitted(line, wide - 0.2, _SIZE)
            middle = y + _PAD + _LINE * (at + 0.5)
            write(self.page, left + 0.1, middle, text, size=_SIZE, on=fill)
        return y + high / 2

    def _described(self):
        for m, row in enumerate(self.runs):
            read = repr(" ".join(self.splits[m]))
            sent = [f"{_listed(run)} for reduce {r}" for r, run in enumerate(row)]
            yield f"Map {m} reads {read} and leaves {'; '.join(sent)}."
        for r, part in enumerate(self.parts):
            got = _listed(self.groups[r])
            yield f"Reduce {r} gets {got} and writes {_listed(part)}."


def _listed(lines):
    return ", ".join(lines) or "nothing"


def _merged(runs):
    pairs = sorted((pair for run in runs for pair in run), key=itemgetter(0))
    grouped = groupby(pairs, key=itemgetter(0))
    return [(key, [value for _, value in group]) for key, group in grouped]


def _lines(pairs):
    lines = [literal(f"{key}  {value}") for key, value in pairs[:_MOST]]
    return lines + [f"and {len(pairs) - _MOST} more"] * (len(pairs) > _MOST)


def _high(lines):
    return _LINE * max(1, len(lines)) + 2 * _PAD


def _room(heights):
    return sum(heights) + _GAP * len(heights)


def _checked(splits, runs, parts):
    try:
        splits = [literal(text, 200) for text in splits]
        runs = [[[(k, v) for k, v in run] for run in row] for row in runs]
        parts = [[(k, v) for k, v in part] for part in parts]
    except (TypeError, ValueError):
        splits, parts = [], []
    fits = len(splits) == len(runs) and {*map(len, runs)} == {len(parts)}
    if not splits or not parts or not fits:
        raise InvalidArgument(
            "dataflow takes one text for each map task, for each of them a list of "
            f"pairs for each reduce task, and the pairs of each part: {_EXAMPLE}"
        )
    return splits, runs, parts
