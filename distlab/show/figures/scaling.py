"""`scaling`: points and predicted lines, over sizes or over ranks.

Each curve is named at its end, where the eye arrives, and not in a legend. A series
and its prediction share name, colour and label: points are measured, or computed as on
a virtual clock, and dashed lines are predicted.
"""

import math
import operator

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    curve,
    inside,
    is_narrow,
    page_width,
    points,
    shapes,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Scale, readable_number
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import GRID, MUTED, rank_color, tint

__all__ = ["checked_curves", "ends_in_words", "ratios_in_words", "scaling"]


def checked_curves(curves, which: str, *, log_x, log_y) -> dict[str, list]:
    """Return name -> [(x, y), ...] in order of x.

    which: the argument that the curves came in, for the message.

    Raises: InvalidArgument naming the first curve that cannot be drawn, and why.
    """
    if not hasattr(curves, "items"):
        kind = type(curves).__name__
        raise InvalidArgument(
            f"{which} is a dict from a name to (xs, ys), and got {kind}."
        )
    checked = {}
    for name, pair in curves.items():
        where = f"{which}[{name!r}]"
        try:
            xs, ys = ([float(number) for number in numbers] for numbers in pair)
            spots = sorted(zip(xs, ys, strict=True))
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"{where} is two lists of numbers of the same length, (xs, ys)."
            )
        if not spots:
            raise InvalidArgument(f"{where} has no points.")
        for x, y in spots:
            if not (math.isfinite(x) and math.isfinite(y)):
                raise InvalidArgument(f"{where} has a point that is no number: {x, y}.")
            if (log_x and x <= 0) or (log_y and y <= 0):
                raise InvalidArgument(
                    f"{where} has the point {x, y}; a logarithmic axis has no place "
                    "for zero and less."
                )
        checked[str(name)] = spots
    return checked


def ends_in_words(curves, what: str) -> list[str]:
    """Return for each curve the sentence with its first and last value."""
    said = []
    for name, spots in curves.items():
        ends = [spots[0], spots[-1]][: len(spots)]
        values = [f"{readable_number(y)} at {readable_number(x)}" for x, y in ends]
        said.append(f"{literal(name)}, {what}: {' to '.join(values)}.")
    return said


def ratios_in_words(measured, predicted) -> list[str]:
    """Return the ratio of each curve's last measured point to its prediction."""
    said = []
    for name, spots in measured.items():
        x, y = spots[-1]
        foretold = dict(predicted.get(name, [])).get(x)
        if foretold:
            times = f"{y / foretold:.3g} times what was predicted"
            said.append(f"At {readable_number(x)}, {literal(name)} is {times}.")
    return said


_ENDS = ("lows", "highs")
_NAME, _TICK, _LINE = 8.5, 8.25, 0.18
_HEIGHT, _WIDEST_NAME = 3.3, 2.4
_HEAD, _FOOT = 0.42, 0.5


def scaling(
    series,
    *,
    x_label,
    y_label,
    title="",
    predicted=None,
    points="measured",
    spread=None,
    joined=True,
    log_x=False,
    log_y=False,
) -> Picture:
    """Draw points and predicted lines.

    series: name -> (xs, ys). predicted: name -> (xs, ys); the prediction of a series
    goes under the same name. Units belong into the labels. points: for the legend;
    "computed" if they come from a virtual clock or a formula. spread: name -> (lows,
    highs) around the points of some series, such as its worst and best of
    five seeds. joined: False for points without lines.

    Raises: InvalidArgument naming the series that cannot be drawn.
    """
    logs = {"log_x": log_x, "log_y": log_y}
    measured = checked_curves(series, "series", **logs)
    lines = checked_curves(predicted or {}, "predicted", **logs)
    if not measured and not lines:
        raise InvalidArgument(
            "there is nothing to draw: series is empty. For example: "
            'scaling({"ring": ([2, 4, 8], [1.1, 1.6, 1.9])}, x_label="ranks", '
            'y_label="time, ms")'
        )
    bands = checked_bands(spread or {}, series, **logs)
    labels = literal(x_label), literal(y_label), literal(points)
    how = logs | {"bands": bands, "joined": joined}
    return Picture(lambda: _Plot(measured, lines, **how).canvas(title, *labels))


def checked_bands(spread, series, **logs) -> dict[str, list]:
    """Return name -> corners of the area between the lows and highs of a series.

    Raises: InvalidArgument naming the band that cannot be drawn, or has no series.
    """
    bands = {}
    for name, ends in spread.items():
        if name not in series or len(ends) != 2:
            raise InvalidArgument(
                f"spread[{name!r}] is (lows, highs) of a series of that name."
            )
        xs = series[name][0]
        both = {
            f"{name}: {part}": (xs, ys) for part, ys in zip(_ENDS, ends, strict=True)
        }
        low, high = checked_curves(both, "spread", **logs).values()
        bands[str(name)] = [*low, *reversed(high)]
    return bands


class _Plot:
    """Curves by name on two scales; positions on the page are in inches."""

    def __init__(self, measured, lines, *, bands, joined, log_x, log_y):
        self.measured, self.lines = measured, lines
        self.bands, self.joined = bands, joined
        self.names = list(dict.fromkeys([*measured, *lines]))
        spots = [
            s for each in (measured, lines, bands) for c in each.values() for s in c
        ]
        self.x = Scale([x for x, _ in spots], log=log_x)
        self.y = Scale([y for _, y in spots], log=log_y, from_zero=True)
        self.labels = [self._label(name) for name in self.names]
        ticks = [readable_number(number) for number in self.y.ticks(6)]
        self.left = MARGIN + 0.1 + max([width_of(tick, _TICK) for tick in ticks])
        names = max(width_of(label, _NAME) for label in self.labels)
        self.right = page_width() - MARGIN - names - 0.45
        self.below = 0.0  # room for names under a narrow plot
        if is_narrow():
            self.right, self.below = page_width() - MARGIN, _LINE * len(self.names)
        self.height = max(_HEIGHT, _LINE * len(self.names))

    def _label(self, name):
        only = ", predicted" if self.measured and name not in self.measured else ""
        return fitted(literal(name) + only, _WIDEST_NAME, _NAME)

    def canvas(self, title, x_label, y_label, origin):
        key = [(None, f"points: {origin}")] if self.measured else []
        key += [(None, "dashed lines: predicted")] if self.lines else []
        key += [(None, "areas: from the lowest to the highest")] if self.bands else []
        canvas = Canvas(_HEAD + self.height + _FOOT + self.below, title=title, key=key)
        self.page, self.top = canvas.page, canvas.top + _HEAD
        self.bottom = self.top + self.height
        self._draw_axes(x_label, y_label)
        panel = canvas.panel(
            *(self.left, self.top, self.right - self.left, self.height),
            x=(self.x.low, self.x.high),
            y=(self.y.low, self.y.high),
            log=(self.x.log, self.y.log),
        )
        for number, name in enumerate(self.names):
            self._draw_curve(panel, number, name)
        self._draw_names()
        said = [f"{y_label} against {x_label}."]
        said += ends_in_words(self.measured, origin)
        said += ends_in_words(self.lines, "predicted")
        said += ratios_in_words(self.measured, self.lines)
        for name, corners in self.bands.items():
            low, high = (
                readable_number(y) for _, y in corners[len(corners) // 2 - 1 :][:2]
            )
            said.append(f"{literal(name)} ends between {low} and {high}.")
        return canvas.described(said)

    def _x(self, number):
        return self.left + self.x.share(number) * (self.right - self.left)

    def _y(self, number):
        return self.bottom - self.y.share(number) * self.height

    def _draw_axes(self, x_label, y_label):
        page, bottom, small = self.page, self.bottom, {"size": _TICK, "color": MUTED}
        for number in self.y.ticks(6):
            y, words = self._y(number), readable_number(number)
            strokes(page, [(self.left, y, self.right, y)])
            write(page, self.left - 0.08, y, words, align="right", **small)
        for number in self._x_ticks():
            x, words = self._x(number), readable_number(number)
            strokes(page, [(x, bottom, x, bottom + 0.05)], MUTED)
            at = inside(x, width_of(words, _TICK) / 2)
            write(page, at, bottom + 0.15, words, align="center", **small)
        strokes(page, [(self.left, bottom, self.right, bottom)], MUTED)
        write(page, MARGIN, self.top - 0.24, y_label, size=_NAME, color=MUTED)
        x = self.right - width_of(x_label, _NAME)
        write(page, x, bottom + 0.36, x_label, size=_NAME, color=MUTED)

    def _x_ticks(self):
        """Return the measured x, and those of lines beyond, or else round numbers."""
        drawn = (self.measured or self.lines).values()
        numbers = {x for spots in drawn for x, _ in spots}
        further = {x for spots in self.lines.values() for x, _ in spots}
        numbers = sorted(numbers | {x for x in further if x > max(numbers)})
        end = 0.0
        for number in numbers:
            half = width_of(readable_number(number), _TICK) / 2 + 0.05
            if self._x(number) - half < end:
                return self.x.ticks(7)
            end = self._x(number) + half
        return numbers

    def _draw_curve(self, panel, number, name):
        if name in self.bands:
            color = tint(rank_color(number), 0.25)
            corners, half = self.bands[name], len(self.bands[name]) // 2
            shapes(panel, [corners], color, gid="spread", zorder=2)
            for edge in (corners[:half], corners[half:]):
                xs, ys = zip(*edge, strict=True)
                curve(panel, xs, ys, number, width=0.5, gid="edge of the spread")
        if name in self.lines:
            xs, ys = zip(*self.lines[name], strict=True)
            curve(panel, xs, ys, number, dashed=True, gid="predicted")
        if name in self.measured:
            xs, ys = zip(*self.measured[name], strict=True)
            if self.joined and name not in self.lines and len(set(xs)) == len(xs):
                curve(panel, xs, ys, number, width=0.9, gid="joined")
            points(panel, xs, ys, number, size=7, gid="measured")

    def _draw_names(self):
        """Name each curve right of its end, moved apart where ends are close."""
        ends = []
        for number, name in enumerate(self.names):
            last = [*self.measured.get(name, ())[-1:], *self.lines.get(name, ())[-1:]]
            x, y = max(last, key=operator.itemgetter(0))
            ends.append((self._y(y), self._x(x), number))
        ends.sort()
        places = _apart([y for y, _, _ in ends], self.top, self.bottom)
        left = self.right
        if self.below:
            left, first = MARGIN - 0.1, self.bottom + _FOOT
            places = [first + _LINE * at for at in range(len(ends))]
        for place, (y, x, number) in zip(places, ends, strict=True):
            if not self.below:
                strokes(self.page, [(x + 0.08, y, left + 0.1, place)], GRID)
            if self.names[number] in self.measured:
                points(self.page, [left + 0.25], [place], number)
            else:
                dash = (left + 0.14, left + 0.36)
                curve(self.page, dash, (place, place), number, dashed=True)
            write(self.page, left + 0.42, place, self.labels[number], size=_NAME)


def _apart(wanted, low, high):
    """Return `wanted`, which ascends, moved as little as needed to be a line apart."""
    places = []
    for place in wanted:
        places.append(max(place, places[-1] + _LINE if places else low))
    limit = high
    for at in range(len(places) - 1, -1, -1):
        places[at] = min(places[at], limit)
        limit = places[at] - _LINE
    return places
