"""`NodeAnimation`: nodes, clients and a faulty network, shown by the same player.

Every step is an event of one node or client with its reaction; or a crash, a restart,
a network partition. The space-time diagram opens first: see `spacetime`.
"""

from typing import ClassVar

from distlab.show.canvas.text import literal
from distlab.show.player.animation import MOST_ROWS, Animation, Frame
from distlab.show.player.geometry import Geometry
from distlab.show.player.node_steps import Happenings
from distlab.show.player.node_words import NodeWords
from distlab.show.player.shown_steps import Move
from distlab.show.player.spacetime import Spacetime
from distlab.show.reading.alt_text import plural
from distlab.show.reading.trace_reading import Reading, Span
from distlab.trace import is_lost, words_of
from distlab.units import readable_seconds

__all__ = ["NodeAnimation"]

_MOST_TOLD = 24


class NodeAnimation(Animation):
    """The animation of a trace of nodes; see `Animation` for its attributes.

    happenings: the trace, read. spacetime: its space-time diagram.
    """

    BARS, LANES = "Messages sent so far", "Who was at what"
    STATES: ClassVar = {
        "moving": "client waits for its response",
        "stuck": "node is down",
    }
    OPENS = "space"

    def __init__(self, trace, title=""):
        self.reading = Reading(trace)
        self.happenings = Happenings(trace)
        self.title, self.bound, self.who = literal(title, 80), None, trace.who
        self.world_size, self.chunks, self.bounds = trace.world_size, 0, []
        self.spacetime = Spacetime(self.happenings)
        pairs = {
            ((m.send.rank, m.send.peer) if m.send else (m.recv.peer, m.recv.rank))
            for m in self.happenings.messages
        }
        homes = list(self.happenings.homes.values())
        self.geometry = Geometry.around(pairs, self.happenings.nodes, homes)
        self.rows = self.spacetime.rows[:MOST_ROWS]
        self.stuck, self.gone = [], []
        self.faults = [event for event in trace.events if event.kind == "fault"]
        self.shown_steps = self.happenings.shown_steps
        self.begin_s, self.end_s = self.reading.start_s, self.reading.last_s
        self.lasts_s = max(self.end_s - self.begin_s, 1e-9)
        self.frames = self._frames()
        self.spans = self._waits() + self._deaths()
        self.subtitle = headline(trace)
        self.notes = self._notes()

    def name(self, rank):
        """Return the name of a rank: "node 0" or "client 1"."""
        return self.reading.trace.name(rank)

    def node_name(self, rank):
        """Return the text in a node."""
        if self.happenings.is_client(rank):
            return f"c{rank - self.happenings.nodes}"
        return str(rank)

    def amount(self, count):
        """Return a number of messages as text."""
        return f"{count:,}"

    def _frames(self):
        text = (
            "Nothing has happened yet." if self.shown_steps else "Nothing happens here."
        )
        sent, dead, split = [0] * self.world_size, [], None
        start = Frame("Start", "start", text, [], sent, {}, self.begin_s, [])
        frames, words = [start], NodeWords(self.happenings)
        for number, stop in enumerate(self.shown_steps, 1):
            title, short, described = words.described(stop)
            sent, moves, dead = list(sent), [], list(dead)
            split = stop.split or (None if stop.heals else split)
            for node_step in stop.node_steps:
                for send in node_step.sends:
                    sent[send.rank] += 1
                moves += self._moves(node_step)
                if node_step.cause is not None and node_step.cause.kind == "fault":
                    dead = [rank for rank in dead if rank != node_step.rank]
                    dead += [node_step.rank] * (node_step.cause.label != "restart")
            frame = Frame(
                title, short or str(number), described, moves, sent, {}, stop.at_s, [],
                dead=dead, cuts=self._cuts(split),
            )  # fmt: skip
            frames.append(frame)
        frames[-1].text = " ".join(filter(None, [frames[-1].text, words.left_over()]))
        return frames

    def _moves(self, node_step):
        """Return the messages that arrive or are dropped in a step, as moves."""
        moves = []
        if node_step.cause is not None and node_step.cause.kind == "recv":
            event = node_step.cause
            message = self.happenings.message_of[id(event)][0]
            moves.append(_move(event.peer, event.rank, message, "arrived"))
        for send in node_step.sends:
            if is_lost(send) and send.end == send.start:
                message = self.happenings.message_of[id(send)][0]
                moves.append(_move(send.rank, send.peer, message, "dropped"))
        if node_step.lost is not None:
            send = node_step.lost.send
            moves.append(_move(send.rank, send.peer, node_step.lost, "dropped"))
        return moves

    def _cuts(self, split):
        nodes = range(self.happenings.nodes)
        if split is None:
            return []
        return [(a, b) for a in nodes for b in nodes if a < b and split.parts(a, b)]

    def _waits(self):
        """Return a span for each operation of a client, from invocation to response."""
        spans, open_calls = [], {}
        for event in self.reading.trace.events:
            if not self.happenings.is_client(event.rank):
                continue
            if event.kind in ("send", "mark") or event.rank in open_calls:
                if event.rank in open_calls:
                    call = open_calls.pop(event.rank)
                    answered = event.kind == "recv"
                    spans.append(self._wait(call, event if answered else None, event))
                if event.kind == "send":
                    open_calls[event.rank] = event
        return spans + [self._wait(call, None, None) for call in open_calls.values()]

    def _wait(self, call, answer, until):
        message_of = self.happenings.message_of
        words = literal(words_of(message_of[id(call)][0]), 30)
        if answer is not None:
            words += f" → {literal(words_of(message_of[id(answer)][0]), 30)}"
        end_s = self.end_s if until is None else until.start
        return Span(call.rank, "moving", call.start, end_s, words)

    def _deaths(self):
        spans, since = [], {}
        for event in self.faults:
            if event.label.startswith("partition"):
                continue
            if event.rank in since:
                begin_s = since.pop(event.rank)
                spans.append(Span(event.rank, "stuck", begin_s, event.start, "down"))
            if event.label != "restart":
                since[event.rank] = event.start
        left = [Span(r, "stuck", at, self.end_s, "down") for r, at in since.items()]
        return spans + left

    def _notes(self):
        notes = []
        if self.spacetime.wordless:
            described = plural(self.spacetime.wordless, "message")
            notes.append(
                f"The words of {described} are left out: there is no room for them."
            )
        if len(self.spacetime.rows) > MOST_ROWS:
            hidden = len(self.spacetime.rows) - MOST_ROWS
            notes.append(
                f"{plural(hidden, 'lane')} of {len(self.spacetime.rows)} left out."
            )
        return notes

    def alt(self) -> str:
        """Return the text alternative of the animation."""
        said = [f"{self.title}."] if self.title else []
        said.append(f"Player of {self.subtitle}.")
        shown = self.frames[1 : _MOST_TOLD + 1]
        said += [f"{number}. {frame.text}" for number, frame in enumerate(shown, 1)]
        more = len(self.frames) - 1 - _MOST_TOLD
        if more > 0:
            said.append(f"And {plural(more, 'more frame')}.")
        return " ".join([*said, *self.notes])


def headline(trace) -> str:
    """Return nodes, messages, drops, faults and duration in one line."""
    sends = [event for event in trace.events if event.kind == "send"]
    parts = [trace.actors(), plural(len(sends), "message")]
    if trace.lost():
        parts.append(f"{trace.lost():,} dropped")
    faults = [e.label.partition(" ")[0] for e in trace.events if e.kind == "fault"]
    for label in ("crash", "kill", "partition"):
        if label in faults:
            words = plural(faults.count(label), label)
            parts.append(words.replace("crashs", "crashes"))
    lasted = trace.duration_s()
    return ", ".join(parts + [readable_seconds(lasted)] * bool(lasted))


def _move(src, dst, message, fate):
    words = literal(words_of(message), 20) + " dropped" * (fate == "dropped")
    return Move(src, dst, 0, 0, 1, (), (), fate, words)
