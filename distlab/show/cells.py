"""The cells of the step grid on the page, with what ranks marked over them.

A pill is what a rank sends, in its colour; under it stands from whom something comes.

                   reduce-scatter
                ─────────────────────
                step 1 of 3  step 2 of 3
    round            1            2
                (→1  40 B)    (→1  40 B)
                   ←3            ←3
"""

from itertools import groupby

from distlab.show.grid import in_common, selected
from distlab.show.lettering import fitted, width_of, wrapped
from distlab.show.sheet import pill, points, strokes, write
from distlab.show.theme import MUTED, WARNING, rank_color, tint

__all__ = ["Cells"]

_MOST, _WIDEST = 16, 1.25
_WIDE, _STACKED = 8, 7
_GAP, _LINE = 0.32, 0.16
_CENTRE = {"align": "center"}


class Cells:
    """Columns between `left` and `left + room`, wide enough for their words.

    columns: the rounds shown. hidden: the numbers of those left out before the last.
    pitch: from row to row. head_height: of the labels above. right: where cells end.
    stacked: whether bytes stand under the peer, for lack of room beside it.
    """

    def __init__(self, grid, ranks, left, room):
        self.grid, self.ranks, self.left = grid, ranks, left
        words = [grid.broken_heading()]
        words += [grid.stuck_words(rank) for rank in ranks]
        words += [grid.fault.get(rank, "") for rank in ranks]
        widest = max(width_of(text, _WIDE, mono=True) for text in words)
        self.broken_width = widest + 0.35 if widest else 0.0
        self._choose(room - self.broken_width)
        self.last = left + self.width * len(self.columns) + self.gap
        self.right = self.last + self.broken_width
        self.pitch = 0.72 if self.stacked else 0.58
        self._choose_heads()

    def _choose(self, room):
        """Fix the columns: with bytes beside the peer, else under it, else fewer."""
        self.columns, hidden = selected(self.grid.columns, _MOST)
        self.gap = _GAP if hidden else 0.0
        need = self._need(stacked=False)
        self.stacked = need * len(self.columns) > room - self.gap
        if self.stacked:
            need = self._need(stacked=True)
            if need * len(self.columns) > room - self.gap:
                self.gap = _GAP
                most = max(2, int((room - _GAP) / need))
                self.columns, hidden = selected(self.grid.columns, most)
        self.hidden = [column.number for column in hidden]
        self.size = _STACKED if self.stacked else _WIDE
        share = (room - self.gap) / max(1, len(self.columns))
        self.width = min(max(_WIDEST, need), share)

    def _need(self, stacked):
        """Return the width of the widest cell in inches."""
        size, beside = (_STACKED, 0.15) if stacked else (_WIDE, 0.21)
        lines = [""]
        for column in self.columns:
            for cell in (column.cells[r] for r in self.ranks if r in column.cells):
                out = cell.outgoing() if stacked else ["  ".join(cell.outgoing())]
                lines += [*out, cell.incoming() + " "]
        return beside + max(width_of(line, size, mono=True) for line in lines)

    def _choose_heads(self):
        """Fit the labels of marks to the columns they stand over."""
        self.phases, self.steps = [], []
        numbered = enumerate(self.columns)
        for phase, pairs in groupby(numbered, key=lambda pair: pair[1].phase):
            numbers, columns = zip(*pairs, strict=True)
            left, right = self._x(numbers[0]), self._x(numbers[-1]) + self.width
            steps, room = [column.step for column in columns], self.width - 0.06
            if any(width_of(step, self.size) > room for step in steps):
                common, steps = in_common(steps)
                phase = ", ".join(part for part in (phase, common) if part)
            lines = wrapped(phase, right - left - 0.08, _WIDE, bold=True, most=2)
            self.phases.append((left, right, lines))
            self.steps += [fitted(step, room, self.size) for step in steps]
        most = max([len(lines) for *_, lines in self.phases], default=0)
        self.head_height = 0.42 + _LINE * (most + any(self.steps))

    def _x(self, number):
        """Return the left end of a column; the last stands behind the gap."""
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
                    self._draw_sends(column.cells[rank], rank, middle, self._y(row))
                    self._draw_recvs(column.cells[rank], middle, self._y(row))
        if self.broken_width:
            self._draw_broken()

    def _y(self, row):
        return self.top + (row + 0.5) * self.pitch

    def _draw_heads(self):
        page, numbers_y = self.page, self.top - 0.14
        rule_y = numbers_y - 0.11 - _LINE * any(self.steps)
        for left, right, lines in self.phases:
            x = (left + right) / 2
            for up, line in enumerate(reversed(lines)):
                y = rule_y - 0.11 - _LINE * up
                write(page, x, y, line, size=_WIDE, bold=True, **_CENTRE)
            if lines:
                strokes(page, [(left + 0.04, rule_y, right - 0.04, rule_y)], MUTED)
        for number, column in enumerate(self.columns):
            x, step, y = self._x(number) + self.width / 2, self.steps[number], numbers_y
            write(page, x, y - _LINE, step, size=self.size, color=MUTED, **_CENTRE)
            write(page, x, y, str(column.number), **_CENTRE)
        if self.hidden:
            x = self._x(len(self.columns) - 1) - self.gap / 2
            write(page, x, numbers_y, "⋯", size=9, color=MUTED, **_CENTRE)

    def _draw_sends(self, cell, rank, middle, y):
        lines = [line for line in cell.outgoing() if line]
        if not lines:
            return
        lines = lines if self.stacked else ["  ".join(lines)]
        wide = max(width_of(line, self.size, mono=True) for line in lines) / 2
        wide += 0.05 if self.stacked else 0.08
        y, high = y - 0.11, 0.05 + 0.07 * len(lines)
        box = (middle - wide, y - high, middle + wide, y + high)
        pill(self.page, box, rank_color(rank))
        for number, line in enumerate(lines):
            at = y + 0.14 * (number - (len(lines) - 1) / 2)
            write(self.page, middle, at, line, size=self.size, mono=True, **_CENTRE)

    def _draw_recvs(self, cell, middle, y):
        words = cell.incoming()
        if words:
            y += 0.21 if self.stacked else 0.16
            left = middle - (width_of(words, self.size, mono=True) + 0.13) / 2
            peers = {event.peer for event in cell.recvs} - {None}
            if len(peers) == 1:
                points(self.page, [left + 0.04], [y], *peers, size=5)
            write(self.page, left + 0.13, y, words, size=self.size, mono=True)

    def _draw_broken(self):
        """Draw the last column: what never ended, and what was broken on purpose."""
        page, middle = self.page, self.right - self.broken_width / 2
        words = self.grid.broken_heading()
        write(page, middle, self.top - 0.14, words, color=WARNING, **_CENTRE)
        for row, rank in enumerate(self.ranks):
            stuck, fault = self.grid.stuck_words(rank), self.grid.fault.get(rank)
            y, apart = self._y(row), 0.14 if stuck and fault else 0.0
            if fault:
                left = middle - width_of(fault, _WIDE) / 2 - 0.08
                at = {"size": 9, "marker": "X", "color": WARNING}
                points(page, [left], [y - apart], rank, **at)
                write(page, left + 0.14, y - apart, fault, size=_WIDE, color=WARNING)
            if stuck:
                wide, y = width_of(stuck, _WIDE, mono=True) / 2 + 0.08, y + apart
                box = (middle - wide, y - 0.12, middle + wide, y + 0.12)
                pill(page, box, WARNING, fill=tint(WARNING, 0.1), dashed=True)
                write(page, middle, y, stuck, size=_WIDE, mono=True, **_CENTRE)
