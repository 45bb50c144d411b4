"""Still pictures of the space-time diagram: some steps of it, or all, in lines."""

import math

from distlab.show.film.svg import circle, color_of, cross, curve, head, paths, text
from distlab.show.film.weave import ARRIVED, LEFT, LOST, RIGHT, UNDER_WAY, bent

__all__ = ["stops_wide", "weave_lines", "weave_window"]

_MOST_LINES = 4
_LATER = ' opacity="0.22"'


def stops_wide(weave) -> float:
    """Return the number of steps that fit beside each other."""
    return (RIGHT - LEFT) / weave.unit


def weave_lines(weave) -> tuple[list[str], int]:
    """Return the lines of the whole diagram, and the number of steps in them."""
    each = weave.line
    lines = min(_MOST_LINES, max(1, math.ceil(weave.count / each)))
    shown = min(weave.count, lines * each)
    return [
        weave_window(weave, line * each, min(each, shown - line * each))
        for line in range(lines)
    ], shown


def weave_window(weave, first: float, wide: float, until: float | None = None) -> str:
    """Return `wide` steps from `first` on as SVG; those after `until` are pale."""
    view = _Window(weave, first, wide, weave.count if until is None else until)
    return view.drawn()


class _Window:
    """A part of the diagram, clipped by rectangles over its edges."""

    def __init__(self, weave, first, wide, until):
        self.weave, self.first, self.wide, self.until = weave, first, wide, until
        self.last = first + wide

    def x(self, place):
        """Return the x on the page of a position in steps."""
        return LEFT + (place - self.first) * self.weave.unit

    def inside(self, low, high):
        """Return True if a stretch is visible."""
        return high >= self.first and low <= self.last

    def drawn(self):
        """Return the part as SVG."""
        weave = self.weave
        body = [self._walls(), self._lives()]
        body += [self._strand(s) for s in weave.strands if self.inside(s.x0, s.x1)]
        body += [self._sign(s) for s in weave.signs if self.inside(s.x, s.x)]
        body += [
            self._words(s.words, s.at, "mono ink halo", s.x0) for s in weave.strands
        ]
        body += [self._words(s.words, s.at, _look(s.kind), s.x) for s in weave.signs]
        for k in range(math.floor(self.first) + 1, math.ceil(self.last) + 1):
            if k <= weave.count:
                body.append(text("muted", self.x(k - 0.5), 13, f"{k}", 11, "middle"))
        edge = self.x(self.last)
        cover = f'y="0" height="{weave.bottom + 8:g}"'
        body.append(f'<rect class="paper" x="-20" {cover} width="{LEFT + 18}"/>')
        body.append(f'<rect class="paper" x="{edge + 2:.1f}" {cover} width="1100"/>')
        for rank in weave.rows:
            y, name = weave.y[rank], weave.all.trace.name(rank)
            client, color = weave.all.is_client(rank), f"f{color_of(rank)}"
            square = (
                f'<rect class="{color}" x="4" y="{y - 4:.1f}" width="8" height="8"/>'
            )
            body.append(square if client else circle(color, 8, y, 5))
            body.append(text("muted" if client else "ink", 19, y + 4, name, 12))
        return "".join(body)

    def _walls(self):
        drawn = {"wall": [], "span": []}
        words, top = "", self.weave.top
        for begin, end, y in self.weave.walls:
            if self.inside(begin, end) and begin <= self.until:
                low, high = max(begin, self.first), min(end, self.last, self.until)
                drawn["wall"].append(f"M{self.x(low):.1f} {y:.1f}H{self.x(high):.1f}")
        for begin, end, told in self.weave.sides:
            if self.inside(begin, end) and begin <= self.until:
                low, high = max(begin, self.first), min(end, self.last, self.until)
                a, b = self.x(low), self.x(high)
                drawn["span"].append(f"M{a:.1f} {top - 2:g}v-5H{b:.1f}v5")
                words += text("bad halo", a + 2, top - 11, told, 11)
        return paths(drawn) + words

    def _lives(self):
        drawn = {"life": [], "gone": []}
        for y, begin, end, dead in self.weave.lives:
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
        way = bent(x0, strand.y0, x1, strand.y1, strand.bow * self.weave.unit)
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
