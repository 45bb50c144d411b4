"""The lanes of a timeline: bars, arrows, ticks of marks, faults, unfinished calls."""

from collections import defaultdict

from distlab.show.canvas.canvas import arrow, bars, points, strokes, underlay, write
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import (
    GRID,
    INK,
    PAPER,
    WAITING,
    WARNING,
    rank_color,
    tint,
)
from distlab.show.reading.alt_text import listed
from distlab.units import readable_seconds

__all__ = ["RankLanes"]

_SIZE, _SMALL, _STUCK_WIDTH, _STRIP = 8.25, 8.25, 1.8, 0.8


class RankLanes:
    """One lane per rank of `ranks`, from the top down.

    pitch: from lane to lane, in inches. height: of all lanes. name_width: of the names
    before them. stuck_width: of the words behind them: unfinished calls or, with
    `totals`, the time that each rank waited. spans: the spans in the lanes.
    """

    def __init__(self, reading, ranks, edge_s, *, totals: bool = False):
        self.reading = reading
        self.lane = {rank: number for number, rank in enumerate(ranks)}
        count = max(1, len(ranks))
        self.pitch = max(0.17, min(0.56, 6.5 / count))
        self.half = 0.32 * self.pitch
        self.height = self.pitch * count
        self.size = 8.5 if self.pitch > 0.3 else 8.25
        self.spans = [span for span in reading.spans(edge_s) if span.rank in self.lane]
        self.stuck = {
            rank: fitted(literal(listed(words, 2)), _STUCK_WIDTH, _SIZE)
            for rank, words in reading.stuck.items()
            if rank in self.lane
        }
        waited_s = {rank: reading.waited_s[rank] for rank in ranks if totals}
        self.least = min(waited_s, key=waited_s.get, default=None)
        self.totals = {
            rank: f"waited {readable_seconds(s)}" for rank, s in waited_s.items()
        }
        names = [width_of(f"rank {rank}", self.size) for rank in ranks]
        self.name_width = 0.2 + max(names, default=0.0)
        words = [*self.stuck.values(), *self.totals.values(), "never ended"]
        widest = max(width_of(text, _SIZE, True) for text in words)
        self.stuck_width = 0.12 + widest if self.stuck or totals else 0.0
        self._texts = defaultdict(list)  # rank -> ends of the texts in its lane, inches

    def draw(self, panel, clock, *, arrows: bool) -> None:
        """Draw everything that has a time."""
        self.panel, self.clock = panel, clock
        self._draw_messages()
        self._draw_faults()
        self._draw_together()
        self._draw_work()
        self._draw_marks()
        if arrows:
            self._draw_arrows()

    def name(self, page, left: float, top: float, right: float) -> None:
        """Write each rank before its lane, and unfinished calls or waiting after it."""
        marker = 6 if self.pitch > 0.3 else 4.5
        for rank, lane in self.lane.items():
            y = top + (lane + 0.5) * self.pitch
            begin = left + self.name_width + 0.06
            strokes(page, [(begin, y, right, y)], GRID, width=0.6, zorder=0)
            points(page, [left + 0.07], [y], rank, size=marker)
            write(page, left + 0.2, y, f"rank {rank}", size=self.size)
            if rank in self.stuck:
                words = ["never ended"] * (self.pitch > 0.4) + [self.stuck[rank]]
                for number, line in enumerate(words):
                    at = y + 0.15 * (number - (len(words) - 1) / 2)
                    write(page, right + 0.1, at, line, size=_SIZE, color=WARNING)
            elif rank in self.totals:
                bold = rank == self.least
                write(page, right + 0.1, y, self.totals[rank], size=_SIZE, bold=bold)

    def _middle(self, rank):
        return (self.lane[rank] + 0.5) * self.pitch

    def _box(self, span):
        middle = self._middle(span.rank)
        left, right = self.clock.at(span.start), self.clock.at(span.end)
        return left, middle - self.half, right, middle + self.half

    def _boxes(self, state):
        """Return rank -> the boxes of its spans in that state."""
        boxes = defaultdict(list)
        for span in self.spans:
            if span.state == state:
                boxes[span.rank].append(self._box(span))
        return boxes

    def _draw_messages(self):
        for boxes in self._boxes("waiting").values():
            bars(self.panel, boxes, WAITING, gid="waiting", zorder=2)
        for rank, boxes in self._boxes("moving").items():
            bars(self.panel, boxes, rank_color(rank), gid="moving")
        for boxes in self._boxes("stuck").values():
            fill = tint(WARNING, 0.1)
            bars(self.panel, boxes, fill, edge=WARNING, dashed=True, gid="stuck")

    def _draw_together(self):
        for rank, boxes in self._boxes("together").items():
            pale, edge = tint(rank_color(rank), 0.15), tint(rank_color(rank), 0.5)
            bars(self.panel, boxes, pale, edge=edge, hatch="////", gid="together")
        for span in self.spans:
            if span.state == "together":
                words = literal(span.label, 40)
                left, right = self.clock.inch(span.start), self.clock.inch(span.end)
                wide = width_of(words, self.size)
                if wide + 0.2 <= right - left:
                    self._write_in(span.rank, (left + right - wide) / 2, words, INK)

    def _draw_work(self):
        """Draw own work as a bar below, so that concurrent messages stay visible."""
        strip = _STRIP * self.half
        for boxes in self._boxes("working").values():
            below = [(a, bottom, b, bottom + strip) for a, _, b, bottom in boxes]
            bars(self.panel, below, INK, edge=PAPER, gid="working", zorder=2)
        for span in self.spans:
            if span.state == "working":
                words = literal(span.label, 40)
                left, right = self.clock.inch(span.start), self.clock.inch(span.end)
                if width_of(words, _SMALL) + 0.1 <= right - left and self.pitch > 0.3:
                    y = self._middle(span.rank) + (1 + _STRIP / 2) * self.half
                    x = self._time_at(left + 0.05)
                    write(self.panel, x, y, words, size=_SMALL, color=PAPER)

    def _draw_faults(self):
        for event in self.reading.trace.events:
            if event.kind == "fault" and event.rank in self.lane:
                x, y = self.clock.at(event.start), self._middle(event.rank)
                size = min(10, 60 * self.pitch)
                marker = ">" if event.label == "restart" else "X"
                points(self.panel, [x], [y], 0, size=size, marker=marker, color=WARNING)
                words, at = literal(event.label, 30), self.clock.inch(event.start)
                wide = width_of(words, self.size)
                room = 0.0 if event.rank in self.stuck else self.stuck_width
                fits = at + 0.12 + wide <= self.clock.right + room
                left = at + 0.12 if fits else at - 0.12 - wide
                self._write_in(event.rank, left, words, WARNING)

    def _write_in(self, rank, left, words, color):
        """Write in a lane, unless another text is there already."""
        right = left + width_of(words, self.size)
        if any(left < b + 0.08 and a < right + 0.08 for a, b in self._texts[rank]):
            return
        self._texts[rank].append((left, right))
        x, y = self._time_at(left), self._middle(rank)
        underlay(write(self.panel, x, y, words, size=self.size, color=color))

    def _time_at(self, inches):
        first, last = self.clock.limits
        share = (inches - self.clock.left) / (self.clock.right - self.clock.left)
        return first + share * (last - first)

    def _draw_marks(self):
        lines = []
        for event in self.reading.trace.events:
            if event.kind == "mark" and event.rank in self.lane:
                x, y = self.clock.at(event.start), self._middle(event.rank) - self.half
                lines.append((x, y - 0.14 * self.pitch, x, y))
        strokes(self.panel, lines, INK, width=0.9, gid="marks", zorder=4)

    def _draw_arrows(self):
        for send, recv in self.reading.messages:
            if not send or not recv or recv.end is None:
                continue
            if send.rank in self.lane and recv.rank in self.lane:
                down = self.lane[recv.rank] > self.lane[send.rank]
                edge = self.half if down else -self.half
                begin = self.clock.at(send.start), self._middle(send.rank) + edge
                arrival = self.clock.at(max(recv.start, recv.end))
                end = arrival, self._middle(recv.rank) - edge
                arrow(self.panel, begin, end, rank_color(send.rank))
