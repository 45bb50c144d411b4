"""Reading of a trace: spans of moving and waiting, and counts.

At each time in a call a rank either has a message of its own moving, or waits:

    its send        ··········▐ moves ▌·····
    its recv        ······▐ moves ▌·········
    the rank        ░░░░░░███████████░░░░░░░    waiting, moving, waiting

The waiting spans of a rank add up to `Trace.waited_s`. A call that never ended is one
span of its own, which the trace counts nowhere.
"""

import copy
from collections import Counter, defaultdict
from typing import NamedTuple

from distlab.errors import InvalidArgument
from distlab.show.canvas.text import literal
from distlab.trace import Trace, moves

__all__ = ["Reading", "Span", "trace_of"]

_POINTS = ("mark", "fault")
_MESSAGES = ("send", "recv")


class Span(NamedTuple):
    """A stretch of one rank's time, in seconds.

    state: "waiting", "moving", "stuck", "working", or "together", for barriers and
    collectives. label: the text in it.
    """

    rank: int
    state: str
    start: float
    end: float
    label: str


class Reading:
    """The counts that pictures draw and state, each equal to the trace's own.

    messages: every message. numbered: each that was handed over, with its round.
    sent_bytes, sent: bytes and messages handed over, by rank. waited_s: by rank.
    stuck: for each rank with calls that never ended, these calls, in words.
    start_s, last_s: the first and the last time known.
    """

    def __init__(self, trace):
        self.trace = trace
        self.messages = trace.messages()
        self.numbered = trace.round_of_messages()
        self.rounds = max((number for _, number in self.numbered), default=0)
        self.sent_bytes, self.sent, self.waited_s = Counter(), Counter(), Counter()
        self.stuck = defaultdict(list)
        for event in trace.events:
            if event.end is None and event.kind not in _POINTS:
                self.stuck[event.rank].append(_doing(event))
        for rank in range(trace.world_size):
            sends = trace.handed_over(rank)
            if sends:
                self.sent[rank] = len(sends)
                self.sent_bytes[rank] = sum(event.bytes for event in sends)
        starts = [event.start for event in trace.events] or [0.0]
        ends = [event.end for event in trace.events if event.end is not None]
        self.start_s, self.last_s = starts[0], max([starts[-1], *ends])
        for span in self.spans(self.last_s):
            if span.state == "waiting":
                self.waited_s[span.rank] += span.end - span.start

    def spans(self, edge_s: float) -> list[Span]:
        """Return every span; those that never ended last until `edge_s`."""
        inside, moving, stuck = (defaultdict(list) for _ in range(3))
        for message in self.messages:
            moved = moves(message)
            for event in message:
                if event is not None and event.end is not None:
                    inside[event.rank].append((event.start, event.end))
                    moving[event.rank].append(moved)
        spans = []
        for event in self.trace.events:
            if event.end is None and event.kind not in _POINTS:
                stuck[event.rank].append((event.start, edge_s))
            elif event.kind not in (*_POINTS, *_MESSAGES):
                state = "working" if event.kind == "work" else "together"
                name, end = event.label or event.kind, max(event.start, event.end)
                spans.append(Span(event.rank, state, event.start, end, name))
        for rank in inside.keys() | stuck.keys():
            moved = _merged(moving[rank])
            waited = _gaps(_merged(inside[rank]), moved)
            states = {"waiting": waited, "moving": moved, "stuck": _merged(stuck[rank])}
            for state, stretches in states.items():
                spans += [Span(rank, state, *stretch, "") for stretch in stretches]
        return spans

    def between(self, first: str, last: str) -> "Reading":
        """Return the part between two marks: from its first `first` to its last `last`.
        Marks and faults are left out, and the counts are those of the whole run.

        Raises: InvalidArgument if not every rank has set both, in this order.
        """
        ends = []
        for label in (first, last):
            at = {e.rank: e.start for e in self.trace.events if e.label == label}
            if len(at) < self.trace.world_size:
                raise InvalidArgument(f"not every rank has set a mark {label!r}.")
            ends.append(at.values())
        part, (start_s, last_s) = copy.copy(self), (min(ends[0]), max(ends[1]))
        if last_s <= start_s:
            raise InvalidArgument(f"the mark {last!r} does not come after {first!r}.")
        part.trace = Trace(self.trace.world_size)
        part.start_s, part.last_s = start_s, last_s
        part.spans = lambda edge_s: [
            span._replace(start=max(span.start, start_s), end=min(span.end, last_s))
            for span in self.spans(edge_s)
            if span.start < last_s and span.end > start_s
        ]
        return part


def trace_of(thing) -> Trace:
    """Return `thing` if it is a trace, else its attribute `trace`.

    Raises: InvalidArgument for anything else.
    """
    trace = getattr(thing, "trace", thing)
    if not isinstance(trace, Trace):
        raise InvalidArgument(
            "a picture is drawn from a Trace, or from what carries one, such as the "
            f"report of `run(...)`; this is {type(thing).__name__}. "
            "For example: timeline(report)"
        )
    return trace


def _doing(event):
    words = {"send": f"send to {event.peer}", "recv": f"recv from {event.peer}"}
    return words.get(event.kind, literal(event.label or event.kind, 40))


def _merged(stretches):
    """Return the stretches in order, those that overlap made one; none is empty.

    Two that only touch stay two: they are two steps.
    """
    merged = []
    for start, end in sorted(stretches):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        elif end > start:
            merged.append((start, end))
    return merged


def _gaps(inside, moving):
    """Return the parts of `inside` that `moving` leaves open; both are merged."""
    gaps, at = [], 0
    for start, end in inside:
        reached = start
        while at < len(moving) and moving[at][0] < end:
            gaps.append((reached, moving[at][0]))
            reached = moving[at][1]
            at += 1
        gaps.append((reached, end))
    return [(start, end) for start, end in gaps if end > start]
