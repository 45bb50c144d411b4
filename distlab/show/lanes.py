"""The lanes of a timeline: bars, arrows, ticks of marks, faults, and who is stuck."""

from collections import defaultdict

from distlab.show.lettering import fitted, literal, width_of
from distlab.show.reading import listed
from distlab.show.sheet import arrow, bars, shape, strokes, write
from distlab.show.theme import GRID, INK, PAPER, WAITING, WARNING, rank_color, tint

__all__ = ["Lanes"]

_SIZE, _STUCK_WIDTH = 8, 1.8


class Lanes:
    """One lane per rank of `ranks`, from the top down.

    pitch: from lane to lane, in inches. height: of all lanes. states: what is in them.
    """

    def __init__(self, reading, ranks, edge_s):
        self.reading = reading
        self.lane = {rank: number for number, rank in enumerate(ranks)}
        self.pitch = max(0.17, min(0.56, 6.5 / max(1, len(ranks))))
        self.half = 0.32 * self.pitch
        self.height = self.pitch * max(1, len(ranks))
        self.size = 8.5 if self.pitch > 0.3 else 6.5
        self.spans = [span for span in reading.spans(edge_s) if span.rank in self.lane]
        self.states = {span.state for span in self.spans}
        self.stuck = {
            rank: fitted(literal(listed(words, 2)), _STUCK_WIDTH, _SIZE)
            for rank, words in reading.stuck.items()
            if rank in self.lane
        }
        self._texts = defaultdict(list)  # rank -> (left, right) of texts in its lane, inches

    def stuck_width(self) -> float:
        """Return the inches to leave at the right for the words of what never ended."""
        words = [*self.stuck.values(), "never ended"]
        return 0.12 + max(width_of(text, _SIZE) for text in words) if self.stuck else 0.0

    def draw(self, panel, clock, *, arrows: bool) -> None:
        """Draw everything that has a place in time."""
        self.panel, self.clock = panel, clock
        self._draw_messages()
        self._draw_faults()
        self._draw_together()
        self._draw_marks()
        if arrows:
            self._draw_arrows()

    def name(self, page, left: float, top: float, right: float) -> None:
        """Write each rank beside its lane, and at its end what never ended."""
        for rank, lane in self.lane.items():
            y = top + (lane + 0.5) * self.pitch
            strokes(page, [(left, y, right, y)], GRID, width=0.6, zorder=0)
            bars(page, [(left, y - 0.05, self._name_end(left), y + 0.05)], PAPER, zorder=0.5)
            shape(page, left + 0.07, y, rank, size=6 if self.pitch > 0.3 else 4.5)
            write(page, left + 0.2, y, f"rank {rank}", size=self.size)
            if rank in self.stuck:
                words = [self.stuck[rank]]
                if self.pitch > 0.4:
                    words = ["never ended", *words]
                for number, line in enumerate(words):
                    at = y + 0.15 * (number - (len(words) - 1) / 2)
                    write(page, right + 0.1, at, line, size=_SIZE, color=WARNING)

    def _name_end(self, left):
        return left + 0.25 + max(width_of(f"rank {rank}", self.size) for rank in self.lane)

    def _middle(self, rank):
        return (self.lane[rank] + 0.5) * self.pitch

    def _box(self, span):
        """Return a span's box: the upper half for sends, the lower for receives."""
        middle, gap = self._middle(span.rank), 0.02 * self.pitch
        top = middle + gap if span.kind == "recv" else middle - self.half
        bottom = middle - gap if span.kind == "send" else middle + self.half
        return self.clock.at(span.start), top, self.clock.at(span.end), bottom

    def _draw_messages(self):
        waiting = [self._box(s) for s in self.spans if s.state == "waiting"]
        bars(self.panel, waiting, WAITING, gid="waiting", zorder=2)
        for rank in self.lane:
            moving = [self._box(s) for s in self.spans if s.state == "moving" and s.rank == rank]
            bars(self.panel, moving, rank_color(rank), gid="moving")
        stuck = [self._box(s) for s in self.spans if s.state == "stuck"]
        bars(
            self.panel, stuck, tint(WARNING, 0.1), edge=WARNING, dashed=True, gid="stuck"
        ).set_clip_on(False)

    def _draw_together(self):
        whole = [span for span in self.spans if span.state == "together"]
        for rank in {span.rank for span in whole}:
            color, boxes = rank_color(rank), [self._box(s) for s in whole if s.rank == rank]
            bars(
                self.panel, boxes, tint(color, 0.15), edge=tint(color, 0.5), hatch="////",
                gid="together",
            )  # fmt: skip
        for span in whole:
            words = literal(span.label or span.kind, 40)
            left, right = self.clock.inch(span.start), self.clock.inch(span.end)
            wide = width_of(words, self.size)
            if wide + 0.2 <= right - left:
                middle = (left + right) / 2
                self._write_in(span.rank, middle - wide / 2, words, INK)

    def _draw_faults(self):
        for event in self.reading.trace.events:
            if event.kind == "fault" and event.rank in self.lane:
                at = self.clock.inch(event.start)
                shape(
                    self.panel, self.clock.at(event.start), self._middle(event.rank), event.rank,
                    size=min(10, 60 * self.pitch), marker="X", color=WARNING,
                )  # fmt: skip
                words = literal(event.label, 30)
                beyond = at + 0.12 + width_of(words, self.size) > self.clock.right
                x = at - 0.12 - width_of(words, self.size) if beyond else at + 0.12
                self._write_in(event.rank, x, words, WARNING)

    def _write_in(self, rank, left, words, color):
        """Write in a lane, unless another text is there already."""
        right = left + width_of(words, self.size)
        if all(right + 0.08 < a or b + 0.08 < left for a, b in self._texts[rank]):
            self._texts[rank].append((left, right))
            first, last = self.clock.limits
            scale = (last - first) / (self.clock.right - self.clock.left)
            x = first + (left - self.clock.left) * scale
            write(self.panel, x, self._middle(rank), words, size=self.size, color=color, on=PAPER)

    def _draw_marks(self):
        lines = []
        for event in self.reading.trace.events:
            if event.kind == "mark" and event.rank in self.lane:
                x, y = self.clock.at(event.start), self._middle(event.rank) - self.half
                lines.append((x, y - 0.14 * self.pitch, x, y))
        strokes(self.panel, lines, INK, width=0.9, gid="marks", zorder=4)

    def _draw_arrows(self):
        sides = {(span.rank, span.step, span.kind) for span in self.spans}
        for send, recv in self.reading.messages:
            if not send or not recv or recv.end is None:
                continue
            if send.rank in self.lane and recv.rank in self.lane:
                down = self.lane[recv.rank] > self.lane[send.rank]
                arrow(
                    self.panel,
                    (self.clock.at(send.start), self._edge(send, down, sides)),
                    (self.clock.at(max(recv.end, recv.start)), self._edge(recv, not down, sides)),
                    rank_color(send.rank),
                )

    def _edge(self, event, lower, sides):
        """Return the height of the lower or upper edge of what is drawn for an event."""
        opposite = "recv" if event.kind == "send" else "send"
        inner = lower == (event.kind == "send")
        if inner and (event.rank, event.step, opposite) not in sides:
            return self._middle(event.rank)  # the other half of the lane is empty
        return self._middle(event.rank) + (self.half if lower else -self.half)
