"""The cells of the step grid on the page: pills of what is sent, and from whom comes what."""

from itertools import groupby

from distlab.show.grid import in_common, selected
from distlab.show.lettering import fitted, width_of, wrapped
from distlab.show.sheet import pill, shape, strokes, write
from distlab.show.theme import INK, MUTED, WARNING, rank_color, tint

__all__ = ["Cells"]

_MOST, _WIDEST = 16, 1.25
_WIDE, _STACKED = 8, 7
_GAP = 0.32
_LINE = 0.16


class Cells:
    """Columns between `left` and `left + room`, wide enough for their words.

    columns: the rounds shown. hidden: the numbers of those left out before the last.
    pitch: from row to row. head_height: of the labels above. right: where cells end.
    """

    def __init__(self, grid, ranks, left, room):
        self.grid, self.ranks, self.left = grid, ranks, left
        words = [grid.broken_heading()]
        words += [text for r in ranks for text in (grid.stuck_words(r), grid.fault.get(r, ""))]
        widest = max(width_of(text, _WIDE, mono=True) for text in words)
        self.broken_width = widest + 0.35 if widest else 0.0
        self._choose(room - self.broken_width)
        self.right = left + self.width * len(self.columns) + self.gap + self.broken_width
        self.pitch = 0.72 if self.stacked else 0.58
        self._choose_heads()

    def _choose(self, room):
        """Fix which columns are shown: bytes beside the peer, else under it, else fewer."""
        self.columns, hidden = selected(self.grid.columns, _MOST)
        self.gap = _GAP if hidden else 0.0
        need = self._need(self.columns, stacked=False)
        self.stacked = need * len(self.columns) > room - self.gap
        if self.stacked:
            need = self._need(self.columns, stacked=True)
            if need * len(self.columns) > room - self.gap:
                self.gap = _GAP
                self.columns, hidden = selected(
                    self.grid.columns, max(2, int((room - _GAP) / need))
                )
        self.hidden = [column.number for column in hidden]
        self.size = _STACKED if self.stacked else _WIDE
        count = max(1, len(self.columns))
        self.width = min(max(_WIDEST, need), (room - self.gap) / count)

    def _need(self, columns, stacked):
        """Return the width of the widest cell in inches."""
        size, widest = (_STACKED if stacked else _WIDE), 0.0
        for column in columns:
            for rank in self.ranks:
                if rank in column.cells:
                    cell = column.cells[rank]
                    lines = cell.outgoing() if stacked else [" ".join(cell.outgoing())]
                    wide = max(width_of(line, size, mono=True) for line in lines)
                    wide += 0.1 if stacked else 0.16
                    back = width_of(cell.incoming(), size, mono=True) + 0.15
                    widest = max(widest, wide, back)
        return widest + 0.05

    def _choose_heads(self):
        """Fit the labels of marks to the columns they stand over."""
        self.phases, self.steps = [], []
        for phase, pairs in groupby(enumerate(self.columns), key=lambda pair: pair[1].phase):
            numbers, columns = zip(*pairs, strict=True)
            left, right = self._x(numbers[0]), self._x(numbers[-1]) + self.width
            steps = [column.step for column in columns]
            if any(width_of(step, self.size) > self.width - 0.06 for step in steps):
                common, steps = in_common(steps)
                phase = ", ".join(part for part in (phase, common) if part)
            lines = wrapped(phase, right - left - 0.08, _WIDE, bold=True, most=2)
            self.phases.append((left, right, lines))
            self.steps += [fitted(step, self.width - 0.06, self.size) for step in steps]
        phase_lines = max([len(lines) for *_, lines in self.phases], default=0)
        self.head_height = 0.42 + _LINE * (phase_lines + any(self.steps))

    def _x(self, number):
        """Return the left end of a column; the last stands behind the gap, if there is one."""
        last = number == len(self.columns) - 1
        return self.left + number * self.width + (self.gap if last else 0.0)

    def draw(self, page, top) -> None:
        """Draw every cell; `top` is where the first row begins."""
        self.page, self.top = page, top
        self._draw_heads()
        for number, column in enumerate(self.columns):
            middle = self._x(number) + self.width / 2
            for row, rank in enumerate(self.ranks):
                if rank in column.cells:
                    self._draw_cell(column.cells[rank], rank, middle, self._y(row))
        if self.broken_width:
            self._draw_broken()

    def _y(self, row):
        return self.top + (row + 0.5) * self.pitch

    def _draw_heads(self):
        page, numbers_y = self.page, self.top - 0.14
        rule_y = numbers_y - 0.11 - _LINE * any(self.steps)
        for left, right, lines in self.phases:
            for up, line in enumerate(reversed(lines)):
                y = rule_y - 0.11 - _LINE * up
                write(page, (left + right) / 2, y, line, size=_WIDE, bold=True, align="center")
            if lines:
                strokes(page, [(left + 0.04, rule_y, right - 0.04, rule_y)], MUTED)
        for number, column in enumerate(self.columns):
            middle, step = self._x(number) + self.width / 2, self.steps[number]
            y = numbers_y - _LINE
            write(page, middle, y, step, size=self.size, color=MUTED, align="center")
            write(page, middle, numbers_y, str(column.number), size=8, align="center")
        if self.hidden:
            x = self._x(len(self.columns) - 1) - self.gap / 2
            write(page, x, numbers_y, "⋯", size=9, color=MUTED, align="center")

    def _draw_cell(self, cell, rank, middle, y):
        lines = [line for line in cell.outgoing() if line]
        if lines:
            lines = lines if self.stacked else ["  ".join(lines)]
            wide = max(width_of(line, self.size, mono=True) for line in lines) / 2 + 0.05
            y_pill, half = y - 0.11, 0.05 + 0.07 * len(lines)
            pill(
                self.page,
                (middle - wide, y_pill - half, middle + wide, y_pill + half),
                rank_color(rank),
            )
            for at, line in enumerate(lines):
                at_y = y_pill + 0.14 * (at - (len(lines) - 1) / 2)
                write(self.page, middle, at_y, line, size=self.size, mono=True, align="center")
        if cell.recvs:
            words, peer = cell.incoming(), cell.recvs[0].peer
            left = middle - (width_of(words, self.size, mono=True) + 0.13) / 2
            y_back = y + (0.21 if self.stacked else 0.16)
            if peer is not None:
                shape(self.page, left + 0.04, y_back, peer, size=5)
            write(self.page, left + 0.13, y_back, words, size=self.size, mono=True, color=INK)

    def _draw_broken(self):
        """Draw the last column: what never ended, and what was broken on purpose."""
        middle = self.right - self.broken_width / 2
        said = self.grid.broken_heading()
        write(self.page, middle, self.top - 0.14, said, size=8, color=WARNING, align="center")
        for row, rank in enumerate(self.ranks):
            y, stuck, fault = self._y(row), self.grid.stuck_words(rank), self.grid.fault.get(rank)
            apart = 0.14 if stuck and fault else 0.0
            if fault:
                wide = width_of(fault, _WIDE)
                left = middle - wide / 2 - 0.08
                shape(self.page, left, y - apart, rank, size=9, marker="X", color=WARNING)
                write(self.page, left + 0.14, y - apart, fault, size=_WIDE, color=WARNING)
            if stuck:
                wide, y = width_of(stuck, _WIDE, mono=True) / 2 + 0.08, y + apart
                pill(
                    self.page, (middle - wide, y - 0.12, middle + wide, y + 0.12), WARNING,
                    fill=tint(WARNING, 0.1), dashed=True,
                )  # fmt: skip
                write(self.page, middle, y, stuck, size=_WIDE, mono=True, align="center")
