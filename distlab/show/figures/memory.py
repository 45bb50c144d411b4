"""`memory`: the bytes in the memory of each rank, by kind, against the limit.

rank 0  ███▒▒▒░░░░░░░░·····┊····    61 GB
rank 1  ███▒▒▒░░░░░░░░·····┊······  83 GB  over by 3 GB
                         limit
"""

from collections import Counter
from typing import NamedTuple

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    is_narrow,
    page_width,
    points,
    strokes,
    underlay,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Ruler, Scale
from distlab.show.canvas.styles import looks_of
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import INK, MUTED, WARNING
from distlab.show.reading.alt_text import listed, plural
from distlab.show.reading.amounts import checked_amount, shown
from distlab.units import readable_bytes

__all__ = ["memory"]

_NAME, _SIZE, _WIDEST_NAME = 8.5, 8.25, 2.3
_PITCH, _HALF, _HEAD, _FOOT, _APART = 0.34, 0.1, 0.15, 0.36, 0.22
_LIMIT = 0.27  # room for the word over the limit
_MOST, _MOST_TOLD = 24, 8
_EXAMPLE = 'memory([{"parameters": 2e9, "gradients": 2e9}], limit_bytes=80e9)'


def memory(ranks, *, limit_bytes: float | None = None, title: str = "") -> Picture:
    """Draw one bar per rank, stacked by kind, and the limit as a dashed line.

    Of more than 24 bars some are left out, never the fullest, which a note reports.

    ranks: for each rank a dict from a kind, such as "parameters", to bytes; or a dict
    from a label to such a dict. limit_bytes: the bytes that a rank has, or may use.

    Raises: InvalidArgument naming the rank that cannot be drawn.
    """
    rows = _checked(ranks)
    if limit_bytes is not None:
        limit_bytes = checked_amount(limit_bytes, "limit_bytes", _EXAMPLE)
    return Picture(lambda: _Memory(rows, limit_bytes).canvas(title))


class _MemoryBar(NamedTuple):
    """One bar. rank: its number if it has one. parts: kind -> bytes."""

    name: str
    rank: int | None
    parts: dict[str, float]

    @property
    def total(self):
        return sum(self.parts.values())

    @property
    def described(self):
        words = f"{self.name}: {readable_bytes(self.total)}"
        parts = [
            f"{kind} {readable_bytes(count)}" for kind, count in self.parts.items()
        ]
        return f"{words}, of which {listed(parts, 12)}" if parts else words


class _Memory:
    """Names, stacked bars, totals and the limit. Coordinates are inches on the page."""

    def __init__(self, rows, limit):
        self.rows, self.limit = rows, limit
        places, self.hidden = shown([row.total for row in rows], _MOST)
        self.drawn = [rows[place] for place in places]
        self.looks = looks_of(dict.fromkeys(kind for row in rows for kind in row.parts))
        self.over = [row for row in rows if self._excess(row)]
        names = [width_of(self._name(row), _NAME) for row in self.drawn]
        self.indent = 0.0 if rows[0].rank is None else 0.2
        self.above = 0.18 if is_narrow() else 0.0
        self.pitch = _PITCH + self.above
        left = MARGIN + (0 if self.above else self.indent + max(names) + 0.2)
        totals = [readable_bytes(row.total) for row in self.drawn]
        self.end = page_width() - MARGIN
        flags = [width_of(self._flag(row), _SIZE, True) for row in self.drawn]
        if max(flags):
            self.end -= max(flags) + _APART
        wide = max(width_of(total, _SIZE, False, True) for total in totals)
        amounts = [0.0, limit or 0.0, *(row.total for row in self.drawn)]
        right = page_width() - MARGIN if self.above else self.end - wide - _APART
        scale = Scale(amounts, log=False, from_zero=True)
        self.ruler = Ruler(scale, (left, right), readable_bytes, whole=True)

    def _name(self, row):
        return fitted(row.name, 0.8 if is_narrow() else _WIDEST_NAME, _NAME)

    def _excess(self, row):
        return 0.0 if self.limit is None else max(0.0, row.total - self.limit)

    def _flag(self, row):
        excess = self._excess(row)
        return f"over by {readable_bytes(excess)}" if excess else ""

    def canvas(self, title):
        head = _HEAD + (0 if self.limit is None else _LIMIT)
        room = head + self.pitch * len(self.drawn) + _FOOT
        key = [(look.swatch, literal(kind, 30)) for kind, look in self.looks.items()]
        summary = " ".join([*self._judged(), *self._left_out()])
        canvas = Canvas(room, title=title, subtitle=summary, key=key)
        page, top = canvas.page, canvas.top + head
        bottom = top + self.pitch * len(self.drawn) + 0.05
        self.ruler.draw(page, top - 0.05, bottom)
        for number, row in enumerate(self.drawn):
            self._draw_row(page, top + (number + 1) * self.pitch - _PITCH / 2, row)
        self._draw_parts(page, top)
        if self.limit is not None:
            self._draw_limit(page, top - 0.12, bottom)
        said = ["Memory by kind.", f"{self._described()}."]
        return canvas.described(said + [summary] * bool(summary))

    def _draw_row(self, page, y, row):
        y -= 1.35 * self.above
        if row.rank is not None:
            points(page, [MARGIN + 0.07], [y], row.rank)
        write(page, MARGIN + self.indent, y, self._name(row), size=_NAME)
        total = readable_bytes(row.total)
        underlay(write(page, self.end, y, total, mono=True, align="right"))
        if self._excess(row):
            words = {"color": WARNING, "bold": True}
            underlay(write(page, self.end + _APART, y, self._flag(row), **words))

    def _draw_parts(self, page, top):
        """Draw all bars, one artist for each kind."""
        boxes = {kind: [] for kind in self.looks}
        for number, row in enumerate(self.drawn):
            y, below = top + (number + 1) * self.pitch - _PITCH / 2, 0.0
            for kind in self.looks:
                count = row.parts.get(kind, 0.0)
                if count:
                    ends = self.ruler.inch(below), self.ruler.inch(below + count)
                    boxes[kind].append((ends[0], y - _HALF, ends[1], y + _HALF))
                    below += count
        for kind, look in self.looks.items():
            if boxes[kind]:
                bars(page, boxes[kind], gid=f"memory: {kind}", **look.swatch)

    def _draw_limit(self, page, top, bottom):
        x, words = self.ruler.inch(self.limit), f"limit: {readable_bytes(self.limit)}"
        line = (x, top, x, bottom)
        strokes(page, [line], INK, width=1.2, dashed=True, zorder=6, gid="limit")
        half = width_of(words, _SIZE) / 2
        x = min(max(x, MARGIN + half), page_width() - MARGIN - half)
        write(page, x, top - 0.12, words, color=MUTED, align="center")

    def _described(self):
        if len(self.rows) > 1 and all(r.parts == self.rows[0].parts for r in self.rows):
            count = plural(len(self.rows), "rank" if self.indent else "bar")
            return self.rows[0]._replace(name=f"Each of {count}").described
        return listed([row.described for row in self.rows], _MOST_TOLD, "; ")

    def _judged(self):
        """Return the ranks that are over the limit, in words; [] without a limit."""
        if self.limit is None:
            return []
        limit = f"the limit of {readable_bytes(self.limit)}"
        if not self.over:
            return [f"All within {limit}."]
        who = [
            f"{row.name} by {readable_bytes(self._excess(row))}" for row in self.over
        ]
        count = f"{len(self.over)} of {len(self.rows)}"
        verb = "is" if len(self.over) == 1 else "are"
        return [f"{count} {verb} over {limit}: {listed(who, 4)}."]

    def _left_out(self):
        if not self.hidden:
            return []
        count = f"{len(self.hidden)} of {len(self.rows)} bars"
        return [f"{count} are left out; none of them is longer."]


def _checked(ranks):
    """Return the rows.

    Raises: InvalidArgument naming the first rank that cannot be drawn.
    """
    if hasattr(ranks, "items"):
        rows = [
            (literal(name) or "unnamed", None, parts) for name, parts in ranks.items()
        ]
    elif isinstance(ranks, list | tuple):
        rows = [(f"rank {rank}", rank, parts) for rank, parts in enumerate(ranks)]
    else:
        rows = []
    if not rows:
        raise InvalidArgument(
            "ranks is a list, by rank, of dicts from a kind to bytes, and got "
            f"{literal(repr(ranks), 60)}. For example: {_EXAMPLE}"
        )
    return [_MemoryBar(name, rank, _parts(parts, name)) for name, rank, parts in rows]


def _parts(parts, name):
    if not hasattr(parts, "items"):
        raise InvalidArgument(
            f"what {name} holds is a dict from a kind to bytes, and got "
            f"{literal(repr(parts), 60)}. For example: {_EXAMPLE}"
        )
    checked = Counter()  # kinds that are the same in print count as one
    for kind, count in parts.items():
        amount = checked_amount(count, f"{kind!r} of {name}", _EXAMPLE)
        checked[literal(kind) or "unnamed"] += amount
    return dict(checked)
