"""`ratios`: predicted amounts beside measured ones, and their ratio.

ring        ┌╌╌╌╌╌╌╌╌╌┐         96 kB    100 kB   1.04 x
            ██████████
naive       ┌╌╌╌┐               40 kB         –   not measured
"""

import math
from typing import NamedTuple

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    is_narrow,
    page_width,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Ruler, Scale
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import INK, MUTED, PAPER, tint
from distlab.show.reading.alt_text import left_out
from distlab.show.reading.amounts import amount_of, checked_amount, times
from distlab.show.reading.rounds import selected

__all__ = ["ratios"]

_NAME, _SIZE, _WIDEST_NAME = 8.5, 8.25, 2.3
_PITCH, _HEAD, _FOOT, _APART = 0.46, 0.34, 0.36, 0.3
_ABOVE = 0.42  # room for words above the bars of a narrow page
_MOST, _LOG_FROM = 24, 50
_SPOKEN = ("B", "s")  # units that stand beside each number; others stand above all
_FILLED = {"color": tint(INK, 0.7)}
_HOLLOW = {"color": PAPER, "edge": INK, "dashed": True}
_EXAMPLE = 'ratios({"ring": (96_000, 100_000)}, unit="B")'


def ratios(rows, *, unit: str, title: str = "") -> Picture:
    """Draw one pair of bars per row, predicted over measured, and write their ratio.

    The axis is logarithmic if the amounts are more than 50 times apart.

    rows: name -> (predicted, measured); measured is None where it is missing.
    unit: "B" for bytes, "s" for seconds, or the words of another unit.

    Raises: InvalidArgument naming the row that cannot be drawn.
    """
    rows = _checked(rows)
    return Picture(lambda: _Ratios(rows, literal(unit, 24)).canvas(title))


class _RatioRow(NamedTuple):
    """A row: its name, amounts, ratio and verdict."""

    name: str
    predicted: float
    measured: float | None

    @property
    def ratio(self):
        """Measured over predicted, or None where there is no such number."""
        if self.measured is None or not self.predicted:
            return None
        return self.measured / self.predicted

    @property
    def verdict(self):
        if self.measured is None:
            return "not measured"
        if self.predicted:
            return times(self.ratio)
        return "no ratio" if self.measured else "both 0"

    @property
    def distance(self):
        """The distance |log ratio| from the prediction: -1 if there is no ratio."""
        if self.ratio is None:
            return -1.0
        return abs(math.log(self.ratio)) if self.ratio else math.inf


class _Ratios:
    """Names, bars and three columns of words. Coordinates are inches on the page."""

    def __init__(self, rows, unit):
        self.rows, self.unit = rows, unit
        places, hidden = selected(list(range(len(rows))), _MOST)
        self.drawn = [rows[place] for place in places]
        self.note = left_out("row", hidden[0] + 1, hidden[-1] + 1) if hidden else ""
        self.columns = [
            ("predicted", [self._words(row.predicted) for row in self.drawn]),
            ("measured", [self._words(row.measured) for row in self.drawn]),
            ("ratio", [row.verdict for row in self.drawn]),
        ]
        names = [width_of(self._name(row), _NAME) for row in self.drawn]
        wide = [_column_width(column) for column in self.columns]
        self.above = _ABOVE if is_narrow() else 0.0
        self.pitch = _PITCH + self.above
        self.ends = [page_width() - MARGIN - sum(wide[at:]) for at in (1, 2, 3)]
        left = MARGIN + max(names) + 0.2
        right = page_width() - MARGIN - sum(wide) - 0.05
        if self.above:
            left, right = MARGIN, page_width() - MARGIN
        values = [v for row in self.drawn for v in (row.predicted, row.measured)]
        self.ruler = Ruler(_scale(values), (left, right), self._words)

    def _name(self, row):
        return fitted(row.name, 1.8 if is_narrow() else _WIDEST_NAME, _NAME)

    def _words(self, amount):
        """Return an amount as text for a column, or for the axis."""
        if amount is None:
            return "–"
        return amount_of(amount, self.unit if self.unit in _SPOKEN else "")

    def canvas(self, title):
        room = _HEAD + self.pitch * len(self.drawn) + _FOOT
        key = [(_HOLLOW, "dashed: predicted"), (_FILLED, "filled: measured")]
        if self.ruler.scale.log:
            key.append((None, "logarithmic axis: bars do not begin at zero"))
        summary = " ".join(filter(None, [self._furthest(), self.note]))
        canvas = Canvas(room, title=title, subtitle=summary, key=key)
        page, top = canvas.page, canvas.top + _HEAD
        for (words, _), end in zip(self.columns, self.ends, strict=True):
            if not self.above:
                write(page, end, top - 0.16, words, color=MUTED, align="right")
        if self.unit not in _SPOKEN:
            write(page, self.ruler.left, top - 0.16, self.unit, color=MUTED)
        strokes(page, [(MARGIN, top, page_width() - MARGIN, top)])
        self.ruler.draw(page, top, top + self.pitch * len(self.drawn))
        for number, row in enumerate(self.drawn):
            y = top + number * self.pitch
            if number and not self.above:
                self._draw_line(page, y)
            self._draw_row(page, y + self.above + _PITCH / 2, number, row)
        said = ["Predicted against measured.", *map(self._described, self.drawn)]
        return canvas.described(said + [summary] * bool(summary))

    def _draw_line(self, page, y):
        """Draw a line between two rows, beside the bars and not across them."""
        strokes(page, [(MARGIN, y, self.ruler.left - 0.1, y)])
        strokes(page, [(self.ruler.right + 0.1, y, page_width() - MARGIN, y)])

    def _draw_row(self, page, y, number, row):
        self._draw_words(page, y, number, self._name(row))
        self._draw_bar(page, row.predicted, y - 0.15, _HOLLOW, "predicted")
        self._draw_bar(page, row.measured, y + 0.02, _FILLED, "measured")

    def _draw_words(self, page, y, number, name):
        """Write a row's name and numbers beside its bars, or above them."""
        if self.above:
            predicted, measured, ratio = (cells[number] for _, cells in self.columns)
            write(page, MARGIN, y - 0.52, name, size=_NAME)
            write(page, self.ruler.right, y - 0.52, ratio, bold=True, align="right")
            words = fitted(f"{predicted} predicted, {measured} measured", 2.8, _SIZE)
            write(page, MARGIN, y - 0.33, words, color=MUTED)
            return
        write(page, MARGIN, y, name, size=_NAME)
        for (title, cells), end in zip(self.columns, self.ends, strict=True):
            bold = title == "ratio"
            write(page, end, y, cells[number], mono=True, bold=bold, align="right")

    def _draw_bar(self, page, amount, y, look, gid):
        if amount:
            box = (self.ruler.left, y, self.ruler.inch(amount), y + 0.13)
            bars(page, [box], gid=gid, **look)

    def _described(self, row):
        words = f"{row.name}: {amount_of(row.predicted, self.unit)} predicted, "
        if row.measured is None:
            return f"{words}not measured."
        return f"{words}{amount_of(row.measured, self.unit)} measured, {row.verdict}."

    def _furthest(self):
        """Return a sentence on the row furthest from its prediction, "" below two."""
        compared = [row for row in self.rows if row.ratio is not None]
        if len(compared) < 2:
            return ""
        worst = max(compared, key=lambda row: row.distance)
        return f"Furthest from its prediction: {worst.name}, {worst.verdict}."


def _column_width(column):
    title, cells = column
    widest = max(width_of(cell, _SIZE, True, True) for cell in cells)
    return max(widest, width_of(title, _SIZE)) + _APART


def _scale(values):
    """Return the axis of all amounts; zero has a place only on a linear one."""
    positive = [value for value in values if value]
    if positive and max(positive) > _LOG_FROM * min(positive):
        return Scale(positive, log=True)
    return Scale([0.0, *positive], log=False, from_zero=True)


def _checked(rows):
    """Raises: InvalidArgument naming the first row that cannot be drawn."""
    if not hasattr(rows, "items") or not rows:
        got = "an empty dict" if hasattr(rows, "items") else type(rows).__name__
        raise InvalidArgument(
            f"rows is a dict from a name to (predicted, measured), and got {got}. "
            f"For example: {_EXAMPLE}"
        )
    checked = []
    for name, pair in rows.items():
        where = f"rows[{name!r}]"
        try:
            predicted, measured = pair
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"{where} is a pair (predicted, measured), and got "
                f"{literal(repr(pair), 60)}. For example: {_EXAMPLE}"
            )
        predicted = checked_amount(predicted, f"predicted of {where}", _EXAMPLE)
        if measured is not None:
            measured = checked_amount(measured, f"measured of {where}", _EXAMPLE)
        checked.append(_RatioRow(literal(name) or "unnamed", predicted, measured))
    return checked
