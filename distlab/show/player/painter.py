"""`Painter`: still frames of an animation's canvas as SVG.

┌──────────────────────────────┬───────────────────┐
│ stage: nodes, chunks, pills  │ bytes sent so far │
│                              │ waiting           │  see `panel`
└──────────────────────────────┴───────────────────┘
"""

import math
from collections import defaultdict
from html import escape

from distlab.show.player.geometry import MOST_CHUNKS, MOST_NAMED
from distlab.show.player.rank_layout import WIDTH
from distlab.show.player.svg import (
    box,
    circle,
    color_of,
    cross,
    curve,
    head,
    marker,
    paths,
    point,
    rect,
    text,
)
from distlab.show.reading.alt_text import plural
from distlab.units import readable_bytes

__all__ = ["MOST_PILLS", "Painter"]

MOST_PILLS, _MOST_PILL_RANKS = 16, 12
_SHORT_WAY = 95


class Painter:
    """The painter of one animation's canvas.

    height: of the canvas. shown: the number of chunks drawn of each table.
    """

    def __init__(self, animation):
        self.animation = animation
        self.geometry = animation.geometry
        self.height = animation.geometry.height
        self.shown = min(animation.chunks, MOST_CHUNKS)

    def stage(self, number: int, part: float = 1.0) -> str:
        """Return the canvas on the way to frame `number`, `part` of it done.

        At 1 it stands still: messages in the middle of their arrows, tables updated.
        """
        return self.base() + self.dynamic(number, part)

    def base(self) -> str:
        """Return the static part: curves, empty tables, nodes and their numbers."""
        g = self.geometry
        drawn = [paths({"way": [curve(way) for way in g.ways.values()]})]
        drawn += [self._empty_table(rank) for rank in range(len(g.tables))]
        if g.tables and g.shape == "ring" and 3 <= self.animation.world_size <= 8:
            drawn.append(self._key())
        drawn += [self._node(rank) for rank in range(len(g.nodes))]
        return "".join(drawn)

    def dynamic(self, number: int, part: float = 1.0) -> str:
        """Return the changing part of the canvas: stripes and messages."""
        frame = self.animation.frames[number]
        before = self.animation.frames[max(0, number - 1)]
        tables = frame.tables if part == 1 else before.tables
        drawn = [self._bands(frame), self._stripes(tables)]
        if part == 1:
            drawn.append(self._fresh(frame))
        drawn.append(paths({"cut": [self._cut(pair) for pair in frame.cuts]}))
        drawn += [self._message(move, part, frame) for move in frame.moves]
        if part == 1:
            drawn += [self._ring("meet", rank) for rank in frame.ranks]
        drawn += [self._crossed(rank) for rank in frame.dead]
        if frame.broken:
            drawn += [self._ring("stuck", rank) for rank in self.animation.stuck]
            drawn += [self._crossed(rank) for rank in self.animation.gone]
        return "".join(drawn)

    def words(self, move) -> str:
        """Return a message's chunk and bytes, as "c3 40 B", as far as they fit."""
        if move.label:
            return move.label
        if move.fate in ("dropped", "awaited"):
            return "dropped" if move.fate == "dropped" else "awaited"
        size = readable_bytes(move.bytes)
        if move.count > 1:
            return f"{move.count}× {size}"
        if not move.chunks or self.animation.chunks == 1:
            return size
        first, last = move.chunks[0], move.chunks[-1]
        chunks = f"c{first}" if first == last else f"c{first}–{last}"
        x0, y0, _, _, x1, y1 = self.way((move.src, move.dst))
        short = math.hypot(x1 - x0, y1 - y0) < _SHORT_WAY
        return chunks if short else f"{chunks} {size}"

    def way(self, pair) -> tuple:
        """Return the curve between two ranks, straight where there are too many."""
        found = self.geometry.ways.get(pair)
        if found:
            return found
        (x0, y0), (x1, y1) = (self.geometry.nodes[rank] for rank in pair)
        return x0, y0, (x0 + x1) / 2, (y0 + y1) / 2, x1, y1

    def _empty_table(self, rank):
        wide, tall = self.geometry.cell
        corners = [self._cell(rank, chunk) for chunk in range(self.shown)]
        rounded = 3 if wide > 12 else 1.5
        drawn = [box("box", x, y, wide, tall, rounded) for x, y in corners]
        if wide >= 8:
            size = 9.5 if wide > 18 else 7.5
            drawn += [
                text(
                    "mono muted",
                    x + wide / 2,
                    y + tall + size + 1,
                    self.animation.cell_name(chunk, wide > 18),
                    size,
                    "middle",
                )
                for chunk, (x, y) in enumerate(corners)
            ]
        return "".join(drawn)

    def _key(self):
        """Return the legend of stripes for the middle of a ring."""
        x, y = WIDTH / 2, self.height / 2
        shares = self.animation.reading.trace.shares
        most = max(
            sum(shares.complete(chunk)) for chunk in range(self.animation.chunks)
        )
        lines = (
            "a stripe in a cell:",
            "one rank's contribution",
            f"{plural(most, 'stripe')}: the chunk is complete",
            "black frame: it has just changed",
        )
        return "".join(
            text("muted told", x, y - 20 + 17 * row, line, 11, "middle")
            for row, line in enumerate(lines)
        )

    def _node(self, rank):
        (x, y), radius = self.geometry.nodes[rank], self.geometry.radius
        color = color_of(rank)
        dot = f"<title>{escape(self.animation.name(rank))}</title>"
        dot += marker(rank, x, y, radius)
        if self.animation.world_size > MOST_NAMED:
            return f"<g>{dot}</g>"
        size = min(16, 1.05 * radius)
        words = self.animation.node_name(rank)
        size = size if len(words) < 3 else 0.75 * size
        number = text(f"num n{color}", x, y + size * 0.36, words, size, "middle")
        return f"<g>{dot}{number}</g>"

    def _cell(self, rank, chunk):
        x, y = self.geometry.tables[rank]
        return x + chunk * (self.geometry.cell[0] + 2), y

    def _slot(self, x, y, share):
        """Return a contribution's stripe (x, y, w, h) in a cell; rank 0 is lowest."""
        wide, tall = self.geometry.cell
        pitch = (tall - 4) / self.animation.world_size
        inset = min(3, wide / 6)
        if self.animation.WHOLE:
            return x + inset, y + 2, wide - 2 * inset, tall - 4
        top = y + tall - 2 - (share + 0.9) * pitch
        return x + inset, top, wide - 2 * inset, max(0.8, 0.8 * pitch)

    def _stripes(self, tables):
        """Draw the cells' contributions: one slot per rank, in the rank's colour."""
        groups, unknown = defaultdict(list), []
        for (rank, chunk), counts in tables.items():
            if chunk >= self.shown or not self.geometry.tables:
                continue
            x, y = self._cell(rank, chunk)
            if counts is None:
                middle = x + self.geometry.cell[0] / 2
                unknown.append(text("bad", middle, y + 19, "?", 13, "middle"))
                continue
            for share in (share for share, count in enumerate(counts) if count):
                left, top, wide, tall = self._slot(x, y, share)
                groups[f"f{color_of(share)}"].append(rect(left, top, wide, tall))
                if counts[share] > 1:
                    around = rect(left - 1, top - 1, wide + 2, tall + 2)
                    groups["twice"].append(around)
            if max(counts, default=0) > 1:
                groups["twice"].append(rect(x, y, *self.geometry.cell))
        groups["twice"] = groups.pop("twice", [])  # over all the others
        return paths(groups) + "".join(unknown)

    def _fresh(self, frame):
        """Frame the cells that have just changed."""
        if not self.geometry.tables:
            return ""
        corners = [self._cell(*key) for key in frame.changed if key[1] < self.shown]
        return paths({"fresh": [rect(*at, *self.geometry.cell) for at in corners]})

    def _message(self, move, part, frame):
        way, color = self.way((move.src, move.dst)), color_of(move.src)
        late = " late" if move.fate in ("waiting", "awaited") else ""
        many = self.animation.world_size > MOST_NAMED
        arrow = paths(
            {
                f"flow s{color}{late}": [curve(way)],
                f"f{color}": [head(way, 4 if many else 12)],
            }
        )
        # side by side, not on top of each other, where two ranks send to each other
        back = any((m.dst, m.src) == move[:2] for m in frame.moves)
        at = (0.34 if back else 0.5) if part == 1 or late else part
        at = min(at, 0.36 if frame.cuts else 0.55) if move.fate == "dropped" else at
        x, y = point(way, at)
        if (
            len(frame.moves) > MOST_PILLS
            or self.animation.world_size > _MOST_PILL_RANKS
        ):
            return arrow + circle(f"dot s{color}", x, y, 2 if many else 4)
        words = self.words(move)
        wide = 6.4 * len(words) + 16
        pill = box(f"pill s{color}{late}", x - wide / 2, y - 12, wide, 24, 12)
        return arrow + pill + text("mono ink", x, y + 3.8, words, 10.5, "middle")

    def _bands(self, frame):
        """Draw a band around the members of each subgroup."""
        wide, around = 2 * self.geometry.radius + 22, self.bands(frame)
        drawn = f'<path class="among" stroke-width="{wide:g}" d="{around}"/>'
        return drawn if around else ""

    def bands(self, frame) -> str:
        """Return the paths through the members of each subgroup of a frame."""
        drawn = []
        for members in frame.groups:
            spots = [self.geometry.nodes[rank] for rank in members]
            x, y = (sum(along) / len(spots) for along in zip(*spots, strict=True))
            spots.sort(key=lambda at: math.atan2(at[1] - y, at[0] - x))
            drawn.append("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in spots) + "z")
        return "".join(drawn)

    def _ring(self, name, rank):
        return circle(name, *self.geometry.nodes[rank], self.geometry.radius + 4)

    def _cut(self, pair):
        """Return a stroke across the line between two nodes."""
        (x0, y0), (x1, y1) = (self.geometry.nodes[rank] for rank in pair)
        length = math.hypot(x1 - x0, y1 - y0) or 1
        dx, dy = -40 * (y1 - y0) / length, 40 * (x1 - x0) / length
        x, y = (x0 + x1) / 2 - dx / 2, (y0 + y1) / 2 - dy / 2
        return f"M{x:.1f} {y:.1f}l{dx:.1f} {dy:.1f}"

    def _crossed(self, rank):
        mark = cross(*self.geometry.nodes[rank], self.geometry.radius + 5)
        return paths({"cross": [mark]})
