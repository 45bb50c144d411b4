"""`steps`: who sends to whom in which round, and how many bytes that makes.

    round       1          2         ...     bytes sent
    rank 0   (→1  40 B) (→1  40 B)           ██████░░░┊ 240 B
                ←3         ←3                         ┊ bound

Rounds are those of `Trace.round_of_messages`: time does not show here, only order.
"""

import math

from distlab.errors import InvalidArgument
from distlab.show.cells import Cells
from distlab.show.grid import Grid, selected
from distlab.show.lettering import fitted, literal, width_of
from distlab.show.picture import Picture
from distlab.show.reading import Reading, trace_of
from distlab.show.sheet import MARGIN, PAGE_WIDTH, Sheet, bars, points, strokes, write
from distlab.show.telling import headline, left_out, sentences
from distlab.show.theme import GRID, INK, MUTED, TRACK, rank_color
from distlab.units import readable_bytes

__all__ = ["steps"]

_MOST = 16
_SIZE = 8.5
_COUNT, _BAR, _WIDEST_BAR, _APART = 0.75, 1.05, 2.6, 0.35


def steps(
    trace, title: str = "", *, bound_bytes=None, bound_label: str = "bound"
) -> Picture:
    """Draw every round of messages as a column, and the bytes each rank sent in all.

    Labels of marks are written over the rounds that follow them.

    trace: a `Trace`, or anything with a `.trace`, such as a report or a failure.
    bound_bytes: what each rank should send, or may send at the most: a dashed line.

    Raises: InvalidArgument if there is no trace in it, or one of nodes, whose messages
    come in no rounds, or the bound is no number.
    """
    trace = trace_of(trace)
    if trace.who == "node":
        raise InvalidArgument(
            "nodes do not send in rounds: each message has a time of its own. "
            "show.player(outcome) and show.timeline(outcome) draw them."
        )
    reading = Reading(trace)
    _check_bound(bound_bytes)
    bound = None if bound_bytes is None else (bound_bytes, literal(bound_label, 40))
    return _Steps(reading, bound).picture(title)


class _Steps:
    """The grid and the bars beside it, row by row. Places are inches on the page."""

    def __init__(self, reading, bound):
        self.reading, self.bound = reading, bound
        ranks = list(range(reading.trace.world_size))
        self.ranks, self.hidden = selected(ranks, _MOST)
        names = [width_of(f"rank {rank}", _SIZE) for rank in self.ranks]
        self.left = MARGIN + 0.4 + max([*names, width_of("round", _SIZE)])
        room = PAGE_WIDTH - MARGIN - _COUNT - _BAR - _APART - self.left
        self.grid = Grid(reading)
        self.cells = Cells(self.grid, self.ranks, self.left, room)

    def picture(self, title):
        cells, summary = self.cells, f"{headline(self.reading)}."
        shown = (("rank", self.hidden), ("round", cells.hidden))
        notes = [left_out(what, some[0], some[-1]) for what, some in shown if some]
        room = cells.head_height + len(self.ranks) * cells.pitch
        room += 0.4 if self.bound else 0.1
        subtitle = " ".join([summary, *notes])
        sheet = Sheet(room, title=title, subtitle=subtitle)
        self.page, self.top = sheet.page, sheet.top + cells.head_height
        self._draw_rows()
        cells.draw(self.page, self.top)
        self._draw_bars()
        said = [f"Steps of {summary}", *sentences(self.reading), *notes]
        if self.bound:
            said.append(f"{self.bound[1]}: {readable_bytes(self.bound[0])} a rank.")
        return Picture(sheet.figure, " ".join([*said, *self.grid.sentences()]))

    def _draw_rows(self):
        """Write each rank beside its row, with a line between rows."""
        page, pitch = self.page, self.cells.pitch
        if self.cells.columns:
            write(page, MARGIN, self.top - 0.14, "round", color=MUTED)
        for row, rank in enumerate(self.ranks):
            y = self.top + row * pitch
            gap = bool(self.hidden) and row == len(self.ranks) - 1
            line = (MARGIN, y, PAGE_WIDTH - MARGIN, y)
            strokes(page, [line], MUTED if gap else GRID, dashed=gap)
            points(page, [MARGIN + 0.07], [y + pitch / 2], rank)
            write(page, MARGIN + 0.2, y + pitch / 2, f"rank {rank}", size=_SIZE)

    def _draw_bars(self):
        """Draw the bytes that each rank sent, on one scale, and the bound over all."""
        page, pitch, sent = self.page, self.cells.pitch, self.reading.sent_bytes
        right = PAGE_WIDTH - MARGIN - _COUNT
        left = max(self.cells.right + _APART, right - _WIDEST_BAR)
        bound_bytes = self.bound[0] if self.bound else 0
        most = max([sent[rank] for rank in self.ranks] + [bound_bytes]) or 1
        write(page, left, self.top - 0.14, "bytes sent", bold=True)
        for row, rank in enumerate(self.ranks):
            y = self.top + (row + 0.5) * pitch
            end = left + sent[rank] / most * (right - left)
            bars(page, [(left, y - 0.09, right, y + 0.09)], TRACK)
            if sent[rank]:
                box = (left, y - 0.09, end, y + 0.09)
                bars(page, [box], rank_color(rank), gid="sent")
            write(page, right + 0.1, y, readable_bytes(sent[rank]), mono=True)
        if self.bound:
            x = left + bound_bytes / most * (right - left)
            self._draw_bound(x, self.top + len(self.ranks) * pitch)

    def _draw_bound(self, x, bottom):
        line = (x, self.top, x, bottom + 0.08)
        strokes(self.page, [line], INK, width=1.2, dashed=True, zorder=6, gid="bound")
        words = fitted(f"{self.bound[1]}: {readable_bytes(self.bound[0])}", 4, 8)
        wide = width_of(words, 8)
        start = min(x - wide / 2, PAGE_WIDTH - MARGIN - wide)
        write(self.page, start, bottom + 0.22, words, color=MUTED)


def _check_bound(bound_bytes):
    """Raises: InvalidArgument for anything but a number of bytes, or None."""
    if bound_bytes is None:
        return
    number = hasattr(bound_bytes, "__float__") and not isinstance(bound_bytes, bool)
    if not number or not math.isfinite(bound_bytes) or bound_bytes < 0:
        raise InvalidArgument(
            f"bound_bytes is a number of bytes per rank, and got {bound_bytes!r}. "
            "For example: steps(report, bound_bytes=2 * (n - 1) / n * size)"
        )
