"""Axes: round numbers to count by, and the clock of a trace."""

import math

from distlab.show.lettering import width_of
from distlab.show.sheet import strokes, write
from distlab.show.theme import GRID, MUTED

__all__ = ["Clock", "round_numbers"]

_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
_SIZE = 8
_NEAR = 0.2  # of the width; a first event as close as this to zero does not move the axis


def round_numbers(low: float, high: float, about: int) -> list[float]:
    """Return roughly `about` multiples of 1, 2 or 5 times a power of ten, low to high."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


class Clock:
    """The time axis of a trace: its unit, its zero, its ends, and its place on the page.

    edge_s: the right end, where spans that never ended stop being drawn.
    limits: left and right end as the axis counts, in `unit` from its zero.
    """

    def __init__(self, reading):
        known_s = max(reading.last_s - reading.start_s, 0.0)
        self.edge_s = reading.last_s + (0.08 * known_s or 1e-6) * bool(reading.stuck)
        begin_s = 0.0 if 0 <= reading.start_s <= _NEAR * known_s else reading.start_s
        shown_s = max(self.edge_s - begin_s, 1e-9)
        near = 0 <= begin_s <= shown_s
        self.zero_s = 0.0 if near else begin_s
        self.unit, self.unit_s = next((u for u in _UNITS if shown_s >= u[1]), _UNITS[-1])
        self.caption = f"time since {'the run began' if near else 'the first event'}, {self.unit}"
        self.limits = self.at(begin_s), self.at(begin_s + shown_s)

    def at(self, time_s: float) -> float:
        """Return a moment as the axis counts it."""
        return (time_s - self.zero_s) / self.unit_s

    def spread(self, left: float, right: float) -> None:
        """Lay the axis between two places on the page, in inches."""
        self.left, self.right = left, right

    def inch(self, time_s: float) -> float:
        """Return where on the page a moment lies."""
        first, last = self.limits
        return self.left + (self.at(time_s) - first) / (last - first) * (self.right - self.left)

    def draw(self, page, top: float, height: float) -> None:
        """Draw the grid over a panel and the numbers and the caption under it."""
        first, last = self.limits
        for number in round_numbers(first, last, 8):
            x = self.inch(self.zero_s + number * self.unit_s)
            strokes(page, [(x, top, x, top + height + 0.05)])
            write(
                page, x, top + height + 0.15, f"{number:g}", size=_SIZE, color=MUTED, align="center"
            )
        strokes(page, [(self.left, top + height, self.right, top + height)], GRID)
        width = width_of(self.caption, _SIZE)
        write(page, self.right - width, top + height + 0.34, self.caption, size=_SIZE, color=MUTED)
