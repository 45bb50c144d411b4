"""`experts`: tokens from each rank to each expert, and the load of the experts.

rank 0 ██▒▒▒▒▒▒▒▒▒▒▒▒██ expert 0 on rank 0   ▆▆▆▆▆▆▆▆╱╱╱┊  12 and 4 dropped
rank 1 ██▒▒▒▒▒▒▒▒▒▒▒▒██ expert 1 on rank 1   ▆▆▆▆       ┊  6
"""

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    page_width,
    shapes,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import literal, width_of
from distlab.show.canvas.theme import INK, MUTED, PAPER, WARNING, rank_color, tint
from distlab.show.reading.alt_text import plural
from distlab.show.reading.amounts import checked_amount

__all__ = ["experts"]

_SIZE, _HEIGHT, _HEAD, _BOX, _BANDS = 8.5, 3.2, 0.35, 0.14, 2.6
_WIDE = 8.0
_EXAMPLE = "experts([[8, 2], [6, 4]], [0, 1], routed=[[8, 3], [6, 4]], capacity=12)"


def experts(kept, owners=None, *, routed=None, capacity=None, title="") -> Picture:
    """Draw a band from each rank to each expert, as wide as its tokens are many.

    kept: for each rank a list, the number of its tokens that each expert computes; or
        an object with all of these, such as the routing of a mixture of experts.
    owners: the rank of each expert. routed: as kept, with the dropped ones.
    capacity: the most that an expert computes.
    Raises: InvalidArgument for lists that do not fit each other.
    """
    if hasattr(kept, "kept"):
        owners, routed, capacity = kept.owners, kept.routed, kept.capacity
        kept = kept.kept
    kept, routed = _checked(kept, owners), _checked(routed or kept, owners)
    return Picture(
        lambda: _Experts(kept, owners, routed, capacity).canvas(literal(title))
    )


class _Experts:
    """Boxes of ranks, bands, boxes of experts and bars, in inches on the page."""

    def __init__(self, kept, owners, routed, capacity):
        self.kept, self.owners, self.capacity = kept, owners, capacity
        self.load, chosen = ([*map(sum, zip(*r, strict=True))] for r in (kept, routed))
        self.over = [a - b for a, b in zip(chosen, self.load, strict=True)]
        self.full = max(*chosen, capacity or 0, 1)
        sums = [sum(row) for row in kept]
        most = max(max(sums) * len(sums), max(self.load) * len(owners), 1)
        self.narrow = page_width() < _WIDE  # counts then stand below names, no bars
        least = 0.4 if self.narrow else 0.24
        self.height = max(_HEIGHT, least * max(len(kept), len(owners)))
        self.scale = 0.8 * self.height / most  # inches for a token
        self.ranks = [f"rank {rank}: {count:,}" for rank, count in enumerate(sums)]
        self.names = [f"expert {e} on rank {rank}" for e, rank in enumerate(owners)]
        self.counts = [
            f"{count:,} and {over:,} dropped" if over else f"{count:,}"
            for count, over in zip(self.load, self.over, strict=True)
        ]
        words = self.ranks, self.names, self.counts
        rank, name, count = (max(width_of(text, _SIZE) for text in w) for w in words)
        self.left = MARGIN + rank + 0.1
        self.right = self.left + 2 * _BOX + _BANDS
        if self.narrow:
            self.right = page_width() - MARGIN - max(name, count) - 0.08
        self.begin, self.end = self.right + name + 0.2, page_width() - MARGIN - count

    def canvas(self, title):
        dropped, kept = sum(self.over), sum(self.load)
        head = f"Choices of {plural(len(self.names), 'expert')}: {kept:,} kept, "
        head += f"{dropped:,} dropped (hatched)."
        if self.capacity is not None:
            head += f" Capacity {self.capacity:,} each, in equal parts for ranks."
        canvas = Canvas(_HEAD + self.height, title=title, subtitle=head)
        self.page, self.top = canvas.page, canvas.top + _HEAD
        self._draw_bands()
        for expert in range(len(self.names)):
            self._draw_load(expert)
        if self.capacity is not None and not self.narrow:
            x, y = self._x(self.capacity), self.top
            line = (x, y - 0.1, x, y + self.height)
            strokes(self.page, [line], INK, dashed=True, zorder=6, gid="capacity")
            write(self.page, x, y - 0.2, "capacity", size=_SIZE, align="center")
        each = [f"{a}: {b}" for a, b in zip(self.names, self.counts, strict=True)]
        described = "; ".join(self.ranks + each).capitalize()
        return canvas.described([head, f"{described}."])

    def _draw_bands(self):
        many, a, b = len(self.names), self.left + _BOX, self.right - _BOX
        ends = [self._y(e, many) - n * self.scale / 2 for e, n in enumerate(self.load)]
        for rank, row in enumerate(self.kept):
            middle, color = self._y(rank, len(self.kept)), rank_color(rank)
            y = start = middle - sum(row) * self.scale / 2
            for expert, count in enumerate(row):
                high, end = count * self.scale, ends[expert]
                corners = ((a, y), (b, end), (b, end + high), (a, y + high))
                if count:
                    shapes(self.page, [corners], tint(color, 0.45), gid="band")
                y, ends[expert] = y + high, end + high
            bars(self.page, [(self.left, start, a, y)], color, gid="rank")
            x, text = self.left - 0.08, self.ranks[rank]
            write(self.page, x, middle, text, size=_SIZE, align="right")

    def _draw_load(self, expert):
        y, x = self._y(expert, len(self.names)), self.right
        high = max(self.load[expert] * self.scale / 2, 0.01)
        box = (x - _BOX, y - high, x, y + high)
        bars(self.page, [box], rank_color(self.owners[expert]), gid="expert")
        text, color = self.counts[expert], WARNING if self.over[expert] else MUTED
        if self.narrow:
            write(self.page, x + 0.08, y - 0.08, self.names[expert], size=_SIZE)
            write(self.page, x + 0.08, y + 0.08, text, size=_SIZE, color=color)
            return
        write(self.page, x + 0.08, y, self.names[expert], size=_SIZE)
        looks = [{"color": rank_color(r), "gid": "load"} for r in range(len(self.kept))]
        looks += [{"color": PAPER, "edge": WARNING, "hatch": "/////", "gid": "dropped"}]
        counts, done = [row[expert] for row in self.kept], 0
        for count, look in zip([*counts, self.over[expert]], looks, strict=True):
            box = (self._x(done), y - 0.07, self._x(done + count), y + 0.07)
            done += count
            if count:
                bars(self.page, [box], **look)
        write(self.page, self.end, y, text, size=_SIZE, color=color)

    def _x(self, tokens):
        return self.begin + (self.end - 0.12 - self.begin) * tokens / self.full

    def _y(self, at, many):
        return self.top + (at + 0.5) * self.height / many


def _checked(rows, owners):
    try:
        rows, owners = [list(row) for row in rows], list(owners)
    except TypeError:
        rows, owners = [], []
    lengths = {len(row) for row in rows} | {len(owners)}
    if len(lengths) > 1 or not owners or not {*owners} <= {*range(len(rows))}:
        raise InvalidArgument(
            f"kept has numbers for each rank, owners a rank for each expert: {_EXAMPLE}"
        )
    return [[int(checked_amount(c, "a count", _EXAMPLE)) for c in row] for row in rows]
