"""Rows of a time axis that is too long for one line: cut as a text is into lines.

0 ─────────── 10 ms          clock: equal stretches of time
10 ────────── 20 ms
a  b c    d   e    f         ranked: each invocation and response one step apart
"""

from bisect import bisect_right

from distlab.show.canvas.canvas import MARGIN, inside, page_width, strokes, write
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import GRID, MUTED
from distlab.show.canvas.time_axis import TimeAxis
from distlab.units import readable_seconds

__all__ = ["Ranked", "clock_rows", "ranked_rows"]

_SIZE, _APART = 8.25, 0.14
_NEAR = 0.1  # inches: nearer to each other not all lines are drawn


class _TimeRow(TimeAxis):
    """A stretch of another clock, in its unit and from its zero."""

    def __init__(self, clock, begin_s, end_s, caption):
        self.begin_s, self.end_s, self.caption = begin_s, end_s, caption
        self.zero_s, self.unit_s = clock.zero_s, clock.unit_s
        self.limits = self.at(begin_s), self.at(end_s)


class Ranked:
    """A row on which times come in order, and distances are not time.

    begin_s, end_s: its ends. Neighbouring times in it are equally far apart.
    """

    caption = "invocations and responses in order; distances are not time"

    def __init__(self, moments: list[float], last: bool):
        self.moments = moments
        self.begin_s, self.end_s = moments[0], moments[-1]
        self.caption = self.caption if last else ""

    def spread(self, left: float, right: float) -> None:
        """Set the left and right end of the row on the page, in inches."""
        self.left, self.right = left, right
        self.unit = (right - left) / max(1, len(self.moments) - 1)

    def inch(self, time_s: float) -> float:
        """Return the x of a time on the page, in inches."""
        if time_s >= self.end_s:
            return self.left + (len(self.moments) - 1) * self.unit
        before = max(0, bisect_right(self.moments, time_s) - 1)
        low, high = self.moments[before : before + 2]
        part = max(0.0, (time_s - low) / (high - low))
        return self.left + (before + part) * self.unit

    def draw(self, page, top: float, height: float) -> None:
        """Draw the grid, and under it the time of each line, where there is room."""
        bottom, free, lines = top + height, 0.0, []
        for moment in self.moments:
            x = self.inch(moment)
            words = readable_seconds(moment)
            half = width_of(words, _SIZE) / 2
            if self.unit > _NEAR or x - half >= free:
                lines.append((x, top, x, bottom + 0.05))
            if x - half >= free:
                x = inside(x, half)
                middle = {"size": _SIZE, "color": MUTED, "align": "center"}
                write(page, x, bottom + 0.15, words, **middle)
                free = x + half + _APART
        strokes(page, lines)
        strokes(page, [(self.left, bottom, self.right, bottom)], GRID)
        words = self.caption
        if width_of(words, _SIZE) > page_width() - 2 * MARGIN:
            words = words.partition(";")[0]  # the legend has no room for more
        half = width_of(words, _SIZE) / 2
        how = {"size": _SIZE, "color": MUTED, "align": "center"}
        write(page, inside(self.right - half, half), bottom + 0.34, words, **how)


def clock_rows(clock: TimeAxis, count: int, begin_s: float, end_s: float) -> list:
    """Return a clock cut into `count` equal stretches."""
    step = (end_s - begin_s) / count
    cuts = [begin_s + number * step for number in range(count)] + [end_s]
    captions = [""] * (count - 1) + [clock.caption]
    return [
        _TimeRow(clock, *ends, caption)
        for *ends, caption in zip(cuts, cuts[1:], captions, strict=False)
    ]


def ranked_rows(moments, count: int) -> list[Ranked]:
    """Return times in order, cut into `count` rows; neighbours share their cut."""
    moments = sorted(set(moments))
    size = -(-(len(moments) - 1) // count)
    parts = [moments[at : at + size + 1] for at in range(0, len(moments) - 1, size)]
    return [Ranked(part, part is parts[-1]) for part in parts]
