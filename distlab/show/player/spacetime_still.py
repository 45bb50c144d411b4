"""Still pictures of the space-time diagram: some steps of it, or all, in lines."""

import math

from distlab.show.player.spacetime import ARRIVED, LEFT, LOST, RIGHT, UNDER_WAY, bent
from distlab.show.player.svg import circle, color_of, cross, curve, head, paths, text

__all__ = ["spacetime_lines", "spacetime_window", "steps_wide"]

_MOST_LINES = 4
_LATER = ' opacity="0.22"'


def steps_wide(spacetime) -> float:
    """Return the number of steps that fit beside each other."""
    return (RIGHT - LEFT) / spacetime.unit


def spacetime_lines(spacetime) -> tuple[list[str], int]:
    """Return the lines of the whole diagram, and the number of steps in them."""
    each = spacetime.line
    lines = min(_MOST_LINES, max(1, math.ceil(spacetime.count / each)))
    shown = min(spacetime.count, lines * each)
    return [
        spacetime_window(spacetime, line * each, min(each, shown - line * each))
        for line in range(lines)
    ], shown


def spacetime_window(
    spacetime, first: float, wide: float, until: float | None = None
) -> str:
    """Return `wide` steps from `first` on as SVG; those after `until` are pale."""
    view = _Window(spacetime, first, wide, spacetime.count if until is None else until)
    return view.drawn()


class _Window:
    """A part of the diagram, clipped by rectangles over its edges."""

    def __init__(self, spacetime, first, wide, until):
        self.spacetime, self.first, self.last = spacetime, first, first + wide
        self.until = until

    def x(self, place):
        """Return the x on the page of a position in steps."""
        return LEFT + (place - self.first) * self.spacetime.unit

    def inside(self, low, high):
        """Return True if a stretch is visible."""
        return high >= self.first and low <= self.last

    def drawn(self):
        """Return the part as SVG."""
        spacetime = self.spacetime
        body = [self._walls(), self._lives()]
        body += [self._strand(s) for s in spacetime.strands if self.inside(s.x0, s.x1)]
        body += [self._sign(s) for s in spacetime.signs if self.inside(s.x, s.x)]
        body += [
            self._words(s.words, s.at, "mono ink halo", s.x0) for s in spacetime.strands
        ]
        body += [
            self._words(s.words, s.at, _look(s.kind), s.x) for s in spacetime.signs
        ]
        for k in range(math.floor(self.first) + 1, math.ceil(self.last) + 1):
            if k <= spacetime.count:
                body.append(text("muted", self.x(k - 0.5), 13, f"{k}", 11, "middle"))
        edge = self.x(self.last)
        cover = f'y="0" height="{spacetime.bottom + 8:g}"'
        body.append(f'<rect class="paper" x="-20" {cover} width="{LEFT + 18}"/>')
        body.append(f'<rect class="paper" x="{edge + 2:.1f}" {cover} width="1100"/>')
        for rank in spacetime.rows:
            y, name = spacetime.y[rank], spacetime.all.trace.name(rank)
            client, color = spacetime.all.is_client(rank), f"f{color_of(rank)}"
            square = (
                f'<rect class="{color}" x="4" y="{y - 4:.1f}" width="8" height="8"/>'
            )
            body.append(square if client else circle(color, 8, y, 5))
            body.append(text("muted" if client else "ink", 19, y + 4, name, 12))
        return "".join(body)

    def _walls(self):
        drawn = {"wall": [], "span": []}
        words, top = "", self.spacetime.top
        for begin, end, y in self.spacetime.walls:
            if self.inside(begin, end) and begin <= self.until:
                low, high = max(begin, self.first), min(end, self.last, self.until)
                drawn["wall"].append(f"M{self.x(low):.1f} {y:.1f}H{self.x(high):.1f}")
        for begin, end, described in self.spacetime.sides:
            if self.inside(begin, end) and begin <= self.until:
                low, high = max(begin, self.first), min(end, self.last, self.until)
                a, b = self.x(low), self.x(high)
                drawn["span"].append(f"M{a:.1f} {top - 2:g}v-5H{b:.1f}v5")
                words += text("bad halo", a + 2, top - 11, described, 11)
        return paths(drawn) + words

    def _lives(self):
        drawn = {"life": [], "gone": []}
        for y, begin, end, dead in self.spacetime.lives:
            low, high = max(begin, self.first), min(end, self.last)
            if low < high:
                line = f"M{self.x(low):.1f} {y:.1f}H{self.x(high):.1f}"
                drawn["gone" if dead else "life"].append(line)
        return paths(drawn)

    def _strand(self, strand):
        x0, x1 = self.x(strand.x0), self.x(strand.x1)
        color = color_of(strand.rank)
        late = " late" if strand.fate == UNDER_WAY else ""
        later = _LATER if strand.x0 > self.until else ""
        way = bent(x0, strand.y0, x1, strand.y1, strand.bow * self.spacetime.unit)
        drawn = f'<path class="strand s{color}{late}" d="{curve(way)}"/>'
        if strand.fate == LOST:
            drawn += paths({"cross": [cross(x1, strand.y1, 5)]})
        elif strand.fate == ARRIVED:
            drawn += paths({f"f{color}": [head(way, 10)]})
        return f"<g{later}>{drawn}</g>"

    def _sign(self, sign):
        x, y, color = self.x(sign.x), sign.y, color_of(sign.rank)
        later = _LATER if sign.x > self.until else ""
        drawn = ""
        if sign.kind == "crash":
            drawn = paths({"cross": [cross(x, y, 7)]})
        elif sign.kind == "restart":
            drawn = paths({f"f{color}": [f"M{x - 5:.1f} {y - 8:.1f}l12 8l-12 8z"]})
        elif sign.kind == "timer":
            drawn = circle(f"clock s{color}", x, y, 6)
            drawn += paths({f"clock s{color}": [f"M{x:.1f} {y - 4:.1f}v4h3"]})
        elif sign.kind == "dot":
            drawn = circle(f"f{color}", x, y, 4)
        return f"<g{later}>{drawn}</g>"

    def _words(self, words, at, look, when):
        x, y = at
        if not words or not self.first <= x <= self.last:
            return ""
        later = _LATER if when > self.until else ""
        return text(look, self.x(x), y + 3.5, words, 11, "middle", later)


def _look(kind):
    return "bad halo" if kind in ("crash", "restart") else "ink strong halo"
