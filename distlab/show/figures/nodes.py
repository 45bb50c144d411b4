"""`nodes`: one lane per node and client, on the clock, and messages between them.

client 0  ─●───────────────●─
node 0    ─●╲──────╱───────●─      an arrow from a message's sending to its arrival;
node 1    ───╲────●──✗┄┄┄┄┄──      a cross where it is dropped
"""

from itertools import pairwise

from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    arrow,
    bars,
    page_width,
    points,
    strokes,
    underlay,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import literal, width_of
from distlab.show.canvas.theme import INK, MUTED, WARNING, rank_color, tint
from distlab.show.canvas.time_axis import TimeAxis
from distlab.show.player.labels import Labels
from distlab.show.player.node_animation import NodeAnimation
from distlab.show.player.spacetime import ARRIVED, LOST, UNDER_WAY
from distlab.show.reading.alt_text import capital, left_out, plural
from distlab.show.reading.rounds import selected
from distlab.trace import words_of

__all__ = ["nodes"]

_MOST_LANES, _MOST_ARROWS, _MOST_NAMED = 24, 600, 80
_HEAD, _FOOT, _SIZE, _LETTERS = 0.3, 0.5, 8.5, 8.25
_FINE = 100  # labels are laid out in hundredths of an inch


def nodes(trace, title: str = "") -> Picture:
    """Draw the messages between nodes and clients over time."""
    animation = NodeAnimation(trace)
    return Picture(lambda: _Nodes(animation).canvas(title))


class _Nodes:
    """Lanes on one clock. Coordinates are inches on the page."""

    def __init__(self, animation):
        self.animation, self.trace = animation, animation.reading.trace
        rows = animation.spacetime.rows
        self.rows, hidden = selected(rows, _MOST_LANES)
        self.notes = [left_out("lane", hidden[0], hidden[-1])] if hidden else []
        self.lane = {rank: number for number, rank in enumerate(self.rows)}
        self.pitch = max(0.2, min(0.62, 7.0 / max(1, len(self.rows))))
        self.height = self.pitch * max(1, len(self.rows))
        self.clock = TimeAxis(animation.reading)
        names = [width_of(animation.name(rank), _SIZE) for rank in self.rows]
        left = MARGIN + 0.2 + max(names, default=0) + 0.15
        self.clock.spread(left, page_width() - MARGIN - 0.1)
        self.messages = [
            message
            for message in animation.happenings.messages
            if message.send is not None
            and {message.send.rank, message.send.peer} <= set(self.rows)
        ]
        if len(self.messages) > _MOST_ARROWS:
            described = plural(len(self.messages), "message")
            self.notes.append(f"Arrows are left out: {described}.")
            self.messages = []
        elif len(self.messages) > _MOST_NAMED:
            self.notes.append("Words of messages are left out: the player has them.")

    def canvas(self, title):
        """Return the canvas."""
        animation = self.animation
        subtitle = " ".join([f"{capital(animation.subtitle)}.", *self.notes])
        room = _HEAD + self.height + _FOOT
        canvas = Canvas(room, title=title, subtitle=subtitle, key=self._key())
        self.page, self.top = canvas.page, canvas.top + _HEAD
        if self.trace.events:
            self.clock.draw(self.page, self.top, self.height)
        self._draw_lanes()
        self._draw_walls()
        self._draw_messages()
        self._draw_faults()
        said = [f"Timeline of {animation.subtitle}.", *self.notes]
        said += [frame.text for frame in animation.frames[1:25]]
        more = len(animation.frames) - 25
        said += [f"And {plural(more, 'more frame')}."] if more > 0 else []
        return canvas.described(said)

    def _key(self):
        key = [(None, "arrow: a message, from where it was sent to where it arrived")]
        spans = {span.state for span in self.animation.spans}
        color = rank_color(self.trace.world_size - 1)
        if "moving" in spans:
            key.append(({"color": tint(color, 0.3)}, "bar: a client waits"))
        if self.trace.lost():
            key.append((None, "cross on an arrow: dropped"))
        if self.animation.happenings.splits:
            wall = {"color": WARNING}
            key.append((wall, "wall: nothing passes between the two sides"))
        return key

    def _y(self, rank):
        return self.top + (self.lane[rank] + 0.5) * self.pitch

    def _draw_lanes(self):
        """Draw names, lifelines, and the bars of clients that wait."""
        down = [span for span in self.animation.spans if span.state == "stuck"]
        for rank in self.rows:
            y = self._y(rank)
            points(self.page, [MARGIN + 0.07], [y], rank, size=6)
            write(self.page, MARGIN + 0.2, y, self.animation.name(rank), size=_SIZE)
            at = self.clock.left
            for span in sorted(s for s in down if s.rank == rank):
                begin, end = self.clock.inch(span.start), self.clock.inch(span.end)
                strokes(self.page, [(at, y, begin, y)], MUTED, width=1, zorder=2)
                gone = [(begin, y, end, y)]
                strokes(self.page, gone, WARNING, width=1, dashed=True, gid="down")
                at = end
            rest = [(at, y, self.clock.right, y)]
            strokes(self.page, rest, MUTED, width=1, zorder=2)
            boxes = [
                (self.clock.inch(s.start), y - 0.06, self.clock.inch(s.end), y + 0.06)
                for s in self.animation.spans
                if s.rank == rank and s.state == "moving"
            ]
            if boxes:
                pale = tint(rank_color(rank), 0.3)
                bars(self.page, boxes, pale, gid="waits", zorder=1)

    def _draw_walls(self):
        for split in self.animation.happenings.splits:
            until_s = split.event.end
            until_s = self.animation.end_s if until_s is None else until_s
            begin, end = map(self.clock.inch, (split.event.start, until_s))
            heights = [self._y(row) + self.pitch / 2 for row in self._at_walls(split)]
            lines = [(begin, y, end, y) for y in heights]
            strokes(self.page, lines, WARNING, width=5, gid="wall", zorder=1)
            words = literal(split.event.label.replace("partition", "partition:"), 60)
            x = min(begin, self.clock.right - width_of(words, _LETTERS))
            write(self.page, x, self.top - 0.1, words, size=_LETTERS, color=WARNING)

    def _at_walls(self, *splits):
        """Return the rows that have a wall below them, of some splits or of all."""
        node_of = self.animation.spacetime.node_of
        return [
            one
            for one, other in pairwise(self.rows)
            for split in splits or self.animation.happenings.splits
            if split.parts(node_of(one), node_of(other))
        ]

    def _draw_messages(self):
        """Draw arrows and their words, which do not overlap."""
        placed = [self._place(message) for message in self.messages]
        lines = [self._y(rank) * _FINE for rank in self.rows]
        lines += [(y + self.pitch / 2) * _FINE for y in map(self._y, self._at_walls())]
        ends = _FINE * self.clock.left - 5, _FINE * self.clock.right
        labels = Labels(12.0, lines, ends)
        for place, _ in placed:
            labels.cross(_fine(place))
        self._draw_marks(labels)
        crosses, seen = [], set()
        for (place, fate), message in zip(placed, self.messages, strict=True):
            x0, y0, x1, y1 = place
            color = rank_color(message.send.rank)
            if fate == ARRIVED and (x0, y0) != (x1, y1):
                arrow(self.page, (x0, y0), (x1, y1), color, width=1.2, gid="message")
            else:
                late = fate != LOST
                strokes(self.page, [place], color, width=1.3, dashed=late, zorder=5)
            if fate == LOST:
                crosses.append((x1, y1))
            words = literal(words_of(message), 30)
            same = id(self.animation.happenings.node_step_of[id(message.send)]), words
            named = len(self.messages) <= _MOST_NAMED and self.pitch > 0.3
            if words and named and not (fate == LOST and same in seen):
                wide = width_of(words, _LETTERS)
                at = labels.beside([_fine(place)], wide * _FINE)
                if at:
                    x, y = at[0] / _FINE - wide / 2, at[1] / _FINE
                    underlay(write(self.page, x, y, words, size=_LETTERS))
            seen.add(same)
        if crosses:
            cross = {"marker": "X", "color": WARNING, "size": 7, "gid": "lost"}
            points(self.page, *map(list, zip(*crosses, strict=True)), 0, **cross)

    def _place(self, message):
        """Return ((x0, y0, x1, y1), fate) of a message's line on the page."""
        send, recv = message
        spacetime = self.animation.spacetime
        x0, y0, y1 = self.clock.inch(send.start), self._y(send.rank), self._y(send.peer)
        if recv is not None:
            return (x0, y0, self.clock.inch(recv.start), y1), ARRIVED
        strand = spacetime.strand_of(message)
        share = (strand.y1 - strand.y0) / (
            spacetime.y[send.peer] - spacetime.y[send.rank] or 1
        )
        lost_at = self.clock.inch(send.start if send.end is None else send.end)
        if strand.fate == UNDER_WAY:
            lost_at = self.clock.right
        x1 = max(lost_at, x0 + 0.12 * abs(share * (y1 - y0)) / self.pitch)
        return (x0, y0, min(x1, self.clock.right), y0 + share * (y1 - y0)), strand.fate

    def _draw_marks(self, labels):
        """Draw nodes' marks and timers as ticks with their words."""
        ticks = []
        for event in self.trace.events:
            if event.kind == "mark" and event.rank in self.lane:
                x, y = self.clock.inch(event.start), self._y(event.rank)
                ticks.append((x, y - 0.09, x, y + 0.09))
                words = literal(event.label, 30)
                wide = width_of(words, _LETTERS, bold=True)
                named = len(self.messages) <= _MOST_NAMED and self.pitch > 0.3
                at = labels.near(x * _FINE, y * _FINE, wide * _FINE) if named else None
                if at:
                    x, y = at[0] / _FINE - wide / 2, at[1] / _FINE
                    underlay(write(self.page, x, y, words, size=_LETTERS, bold=True))
        strokes(self.page, ticks, INK, width=1.4, gid="marks", zorder=6)

    def _draw_faults(self):
        for event in self.animation.faults:
            if event.rank not in self.lane or event.label.startswith("partition"):
                continue
            x, y = self.clock.inch(event.start), self._y(event.rank)
            marker = ">" if event.label == "restart" else "X"
            how = {"marker": marker, "color": WARNING, "size": 9, "gid": "fault"}
            points(self.page, [x], [y], 0, **how)


def _fine(place):
    return tuple(_FINE * number for number in place)
