"""`TimeAxis`: the time axis of a trace."""

from distlab.show.canvas.canvas import inside, strokes, write
from distlab.show.canvas.scale import round_numbers
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import GRID, MUTED

__all__ = ["TimeAxis"]

_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
_LETTERS = {"size": 8.25, "color": MUTED}
_APART = 0.12
_NEAR = 0.2  # of the width: a first event this close to zero leaves the axis at zero


class TimeAxis:
    """The unit of the axis, its zero, its ends, and its place on the page.

    edge_s: the right end, up to which spans that never ended are drawn.
    limits: left and right end in the axis's unit from its zero.
    """

    def __init__(self, reading):
        known_s = max(reading.last_s - reading.start_s, 0.0)
        unended = bool(reading.stuck)
        self.edge_s = reading.last_s + (0.08 * known_s or 1e-6) * unended
        near = 0 <= reading.start_s <= _NEAR * known_s
        begin_s = 0.0 if near else reading.start_s
        shown_s = max(self.edge_s - begin_s, 1e-12 if known_s else 1e-6)
        counted = 0 <= begin_s <= shown_s
        self.zero_s = 0.0 if counted else begin_s
        fitting = [unit for unit in _UNITS if shown_s >= unit[1]]
        self.unit, self.unit_s = [*fitting, _UNITS[-1]][0]
        since = "the run began" if counted else "the first event"
        self.caption = f"time since {since}, {self.unit}"
        self.limits = self.at(begin_s), self.at(begin_s + shown_s)

    def at(self, time_s: float) -> float:
        """Return a time in the axis's unit from its zero."""
        return (time_s - self.zero_s) / self.unit_s

    def spread(self, left: float, right: float) -> None:
        """Set the left and right end of the axis on the page, in inches."""
        self.left, self.right = left, right

    def inch(self, time_s: float) -> float:
        """Return the x of a time on the page, in inches."""
        first, last = self.limits
        share = (self.at(time_s) - first) / (last - first)
        return self.left + share * (self.right - self.left)

    def draw(self, page, top: float, height: float) -> None:
        """Draw the grid over a panel, and under it the numbers and the caption."""
        bottom = top + height
        taken = 0.0
        for number in round_numbers(*self.limits, 8):
            x, words = self.inch(self.zero_s + number * self.unit_s), f"{number:.6g}"
            half = width_of(words, _LETTERS["size"]) / 2
            strokes(page, [(x, top, x, bottom + 0.05)])
            middle = inside(x, half)
            if middle - half > taken:
                write(page, middle, bottom + 0.15, words, align="center", **_LETTERS)
                taken = middle + half + _APART
        strokes(page, [(self.left, bottom, self.right, bottom)], GRID)
        half = width_of(self.caption, _LETTERS["size"]) / 2
        x = inside(self.right - half, half)
        write(page, x, bottom + 0.34, self.caption, align="center", **_LETTERS)
