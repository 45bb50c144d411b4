"""`rates`: data rates of several runs over time, side by side on the same scales.

              normal        no backups     200 killed
    input     █▆▁  ┊        █▆▁      ┊     █▆▁▂  ┊
                                               ▔
    output     ▁▆█▄┊         ▁▆█▄▁▁▁▁┊      ▁▆█▄ ┊
                 891 s           1283 s        933 s

Source: the shape is that of figure 3 in Dean and Ghemawat, "MapReduce" (2004).
"""

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import MARGIN, Canvas, bars, page_width, strokes, write
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Scale
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import GRID, INK, MUTED, rank_color
from distlab.show.reading.alt_text import capital, plural
from distlab.show.reading.amounts import amount_of, checked_number, times
from distlab.units import readable_seconds

__all__ = ["rates"]

_SIZE, _NAME = 8.25, 9.5
_HEIGHT, _ROW_GAP, _COLUMN_GAP = 1.15, 0.38, 0.3
_HEAD, _FOOT = 0.62, 0.45
_MOST_RUNS, _MOST_ROWS = 4, 5
_LEAST = 1.6  # inches: of a run
_EXAMPLE = 'rates({"normal": simulate(), "no backups": simulate(backups=False)})'


def rates(runs, title: str = "", *, unit: str = "B") -> Picture:
    """Draw the rates of up to four runs over time, one run beside the other.

    All panels share the scale of time, and those of one row that of their rate. A
    dashed line marks the end of a run.

    runs: name -> a simulated job; or name -> {"input": [(second, rate per second),
    ...], ...} at equal distances, the same rows for every run. unit: of the amounts.

    Raises: InvalidArgument naming the run that cannot be drawn.
    """
    runs = _checked(runs)
    return Picture(lambda: _Rates(runs, literal(unit, 12)).canvas(title))


class _Rates:
    """Panels in rows and columns. Coordinates are inches on the page."""

    def __init__(self, runs, unit):
        self.runs, self.unit = runs, unit
        self.rows = list(next(iter(runs.values()))[0])
        self.until = Scale([0.0, *(end for _, end in runs.values())], log=False)
        self.until.low = 0.0
        self.scales = {row: self._scale(row) for row in self.rows}
        ticks = [self._amount(t) for s in self.scales.values() for t in s.ticks(3)]
        widest = max(width_of(tick, _SIZE) for tick in ticks)
        self.left = MARGIN + widest + 0.12
        count = len(runs)
        room = page_width() - MARGIN - self.left + _COLUMN_GAP
        self.columns = min(count, max(1, int(room / _LEAST)))
        self.wide = room / self.columns - _COLUMN_GAP
        self.pitch = _HEIGHT + _ROW_GAP
        self.each = _HEAD + self.pitch * len(self.rows) - _ROW_GAP + _FOOT

    def _scale(self, row):
        values = [rate for rows, _ in self.runs.values() for _, rate in rows[row]]
        scale = Scale([0.0, 1e-9, *values], log=False)
        scale.low = scale.low if min(values) < 0 else 0.0
        return scale

    def _amount(self, rate):
        sign = "−" if rate < 0 else ""
        return f"{sign}{amount_of(abs(rate), self.unit)}/s" if rate else "0"

    def canvas(self, title):
        names = list(self.runs)
        canvas = Canvas(self.each * -(-len(names) // self.columns), title=title)
        self.page, self.top = canvas.page, canvas.top + _HEAD
        for first in range(0, len(names), self.columns):
            beside = names[first : first + self.columns]
            for row, name in enumerate(self.rows):
                y = self.top + row * self.pitch - 0.13
                write(self.page, self.left, y, name, size=_SIZE, color=MUTED)
                self._draw_ticks(row, name, len(beside))
            for column, name in enumerate(beside):
                self._draw_run(column, name)
            self.top += self.each
        words = "time since the job began, s"
        style = {"size": _SIZE, "color": MUTED, "align": "right"}
        write(self.page, page_width() - MARGIN, canvas.bottom - 0.02, words, **style)
        said = f"{_listed(self.rows)} of {plural(len(self.runs), 'run')} over time."
        return canvas.described([said, *map(self._described, self.runs)])

    def _x(self, column, second):
        start = self.left + column * (self.wide + _COLUMN_GAP)
        return start + self.until.share(second) * self.wide

    def _y(self, row, name, rate):
        bottom = self.top + row * self.pitch + _HEIGHT
        return bottom - self.scales[name].share(rate) * _HEIGHT

    def _draw_ticks(self, row, name, columns):
        for rate in self.scales[name].ticks(3):
            y, words = self._y(row, name, rate), self._amount(rate)
            style = {"size": _SIZE, "color": MUTED, "align": "right"}
            write(self.page, self.left - 0.08, y, words, **style)
            lines = [
                (self._x(at, 0), y, self._x(at, self.until.high), y)
                for at in range(columns)
            ]
            strokes(self.page, lines, MUTED if not rate else GRID, zorder=1)

    def _draw_run(self, column, run):
        rows, end = self.runs[run]
        words = fitted(run, self.wide - 0.1, _NAME, bold=True)
        y = self.top - _HEAD + 0.18
        write(self.page, self._x(column, 0), y, words, size=_NAME, bold=True)
        for row, name in enumerate(self.rows):
            spots = rows[name]
            half = (spots[1][0] - spots[0][0]) / 2 if len(spots) > 1 else end / 2
            zero = self._y(row, name, 0.0)
            boxes = [
                (
                    self._x(column, max(0.0, at - half)),
                    self._y(row, name, rate),
                    self._x(column, min(at + half, self.until.high)),
                    zero,
                )
                for at, rate in spots
                if rate
            ]
            if boxes:
                bars(self.page, boxes, rank_color(0), gid=f"rate: {name}")
        self._draw_time(column, end)

    def _draw_time(self, column, end):
        """Draw the run's end, and the numbers below the axis."""
        bottom = self.top + self.pitch * len(self.rows) - _ROW_GAP
        x = self._x(column, end)
        line = (x, self.top - 0.1, x, bottom)
        strokes(self.page, [line], INK, width=1.1, dashed=True, zorder=6, gid="end")
        words = f"{end:,.0f} s" if end >= 10 else readable_seconds(end)
        style = {"size": _SIZE, "bold": True, "align": "right"}
        left = self._x(column, 0) + width_of(words, _SIZE, True)
        write(self.page, max(x, left), self.top - 0.19, words, **style)
        taken = 0.0
        for second in self.until.ticks(4):
            at, words = self._x(column, second), f"{second:,.6g}"
            half = width_of(words, _SIZE) / 2
            if at - half > taken:
                style = {"size": _SIZE, "color": MUTED, "align": "center"}
                write(self.page, at, bottom + 0.15, words, **style)
                taken = at + half + 0.08

    def _described(self, name):
        rows, end = self.runs[name]
        first = next(iter(self.runs.values()))[1]
        ratio = "" if end == first else f", {times(end / first)} the first"
        parts = [f"{name}: ends at {end:,.4g} s{ratio}"]
        for row in self.rows:
            at, most = max(rows[row], key=lambda spot: spot[1])
            parts.append(f"{row} at most {self._amount(most)}, at {at:,.4g} s")
            at, least = min(rows[row], key=lambda spot: spot[1])
            if least < 0:
                parts.append(f"falls to {self._amount(least)} at {at:,.4g} s")
        return "; ".join(parts) + "."


def _listed(names):
    between = " and " if len(names) > 1 else ""
    return capital(", ".join(names[:-1]) + between + names[-1])


def _checked(runs):
    """Return name -> (rows, end in seconds).

    Raises: InvalidArgument naming the first run that cannot be drawn.
    """
    if not hasattr(runs, "items") or not 1 <= len(runs) <= _MOST_RUNS:
        raise InvalidArgument(
            f"runs is a dict of 1 to {_MOST_RUNS} runs by name. For example: {_EXAMPLE}"
        )
    checked = {literal(name, 40): _run(run, name) for name, run in runs.items()}
    if len({tuple(rows) for rows, _ in checked.values()}) > 1:
        raise InvalidArgument(f"all runs have the same rows. For example: {_EXAMPLE}")
    return checked


def _run(run, name):
    where = f"runs[{name!r}]"
    rows = run.rates() if hasattr(run, "rates") else run
    if not hasattr(rows, "items") or not 1 <= len(rows) <= _MOST_ROWS:
        raise InvalidArgument(
            f"{where} is a simulated job, or a dict of 1 to {_MOST_ROWS} curves by "
            f"name. For example: {_EXAMPLE}"
        )
    curves = {}
    for row, spots in rows.items():
        try:
            pairs = [(second, rate) for second, rate in spots]
        except (TypeError, ValueError):
            pairs = []
        if not pairs:
            raise InvalidArgument(
                f"{where}[{row!r}] is a list of (second, rate) pairs. "
                f"For example: {_EXAMPLE}"
            )
        what = f"a number in {where}[{row!r}]"
        curves[literal(row, 40)] = [
            tuple(checked_number(number, what, _EXAMPLE) for number in pair)
            for pair in pairs
        ]
    last = max(second for spots in curves.values() for second, _ in spots)
    return curves, float(getattr(run, "elapsed_s", last))
