"""What a trace says, read once: spans of moving and waiting, counts, and sentences.

A rank's side of a message is one or two spans, cut where its partner joined in:

    send on rank 0   |── waiting ──|── moving ──|
    recv on rank 1                 |── moving ──|

A side that never ended is waiting until its partner joined and stuck from there on.
"""

from collections import Counter
from typing import NamedTuple

from distlab.errors import InvalidArgument
from distlab.trace import Trace
from distlab.units import readable_bytes, readable_seconds

__all__ = ["Reading", "Span", "left_out", "listed", "plural", "trace_of"]


class Span(NamedTuple):
    """A stretch of one rank's time, in seconds.

    kind: as in `Event`. state: "waiting", "moving", "stuck" or "together"; the last is
    for barriers, collectives and whatever else is not a message. step, label: as in
    `Event`.
    """

    rank: int
    kind: str
    state: str
    start: float
    end: float
    step: int
    label: str


class Reading:
    """The counts that pictures draw and state, each equal to the trace's own.

    sent_bytes, sent: bytes and messages handed over, by rank. waited_s: by rank.
    numbered: each message handed over, with its round.
    stuck: for each rank with something that never ended, what that was, in words.
    start_s, last_s: the first and the last moment known.
    """

    def __init__(self, trace):
        self.trace = trace
        self.messages = trace.messages()
        self.numbered = trace.round_of_messages()
        self.rounds = max((number for _, number in self.numbered), default=0)
        self.sent_bytes, self.sent, self.waited_s = Counter(), Counter(), Counter()
        self.stuck = {}
        for event in trace.events:
            if event.end is None and event.kind not in ("mark", "fault"):
                self.stuck.setdefault(event.rank, []).append(_doing(event))
            elif event.kind == "send":
                self.sent[event.rank] += 1
                self.sent_bytes[event.rank] += event.bytes
        self.start_s = trace.events[0].start if trace.events else 0.0
        ends = (event.start if event.end is None else event.end for event in trace.events)
        self.last_s = max(ends, default=0.0)
        self.last_s = max([self.last_s, *(event.start for event in trace.events[-1:])])
        for span in self.spans(self.last_s):
            if span.state == "waiting":
                self.waited_s[span.rank] += span.end - span.start

    def spans(self, edge_s: float):
        """Yield every span of the trace; those that never ended last until `edge_s`."""
        for send, recv in self.messages:
            for own, other in ((send, recv), (recv, send)):
                if own is not None:
                    yield from _sides(own, other, edge_s)
        for event in self.trace.events:
            if event.kind not in ("send", "recv", "mark", "fault"):
                state = "together" if event.end is not None else "stuck"
                yield _span(event, state, event.start, event.end, edge_s)

    def headline(self) -> str:
        """Return ranks, messages, bytes, rounds and duration in one line."""
        count = sum(self.sent.values())
        ranks = plural(self.trace.world_size, "rank")
        lasted = readable_seconds(self.trace.duration_s())
        if not count:
            return f"{ranks}, no messages were sent, {lasted}"
        moved = readable_bytes(sum(self.sent_bytes.values()))
        return (
            f"{ranks}, {plural(count, 'message')}, {moved} sent in "
            f"{plural(self.rounds, 'round')}, {lasted}"
        )

    def sentences(self) -> list[str]:
        """Return who sent, who waited, what never ended and what was broken on purpose."""
        said = []
        if self.sent:
            said.append(f"Bytes sent: {self._amounts()}.")
        if self.waited_s:
            longest = max(self.waited_s, key=self.waited_s.get)
            said.append(
                f"Rank {longest} waited longest for its partners, "
                f"{readable_seconds(self.waited_s[longest])} summed over its messages."
            )
        stuck = [f"rank {rank} in {listed(self.stuck[rank], 3)}" for rank in sorted(self.stuck)]
        if stuck:
            said.append(f"Never ended: {listed(stuck, 8, '; ')}.")
        faults = [event for event in self.trace.events if event.kind == "fault"]
        if faults:
            when = [f"{e.label} on rank {e.rank} at {readable_seconds(e.start)}" for e in faults]
            said.append(f"Faults: {listed(when, 8)}.")
        return said

    def _amounts(self):
        amounts = [self.sent_bytes[rank] for rank in range(self.trace.world_size)]
        least, most = min(amounts, default=0), max(amounts, default=0)
        if least == most:
            return f"{readable_bytes(most)} by each rank"
        if len(amounts) <= 8:
            return ", ".join(
                f"{readable_bytes(count)} by rank {rank}" for rank, count in enumerate(amounts)
            )
        return (
            f"from {readable_bytes(least)} by rank {amounts.index(least)} "
            f"to {readable_bytes(most)} by rank {amounts.index(most)}"
        )


def trace_of(thing) -> Trace:
    """Return `thing` if it is a trace, else the trace that it carries.

    Raises: InvalidArgument for anything else.
    """
    trace = getattr(thing, "trace", thing)
    if not isinstance(trace, Trace):
        raise InvalidArgument(
            "a picture is drawn from a Trace, or from what carries one, such as the report of "
            f"`run(...)`; this is {type(thing).__name__}. For example: timeline(report)"
        )
    return trace


def plural(count: int, noun: str) -> str:
    """Return "1 rank" or "4 ranks"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def left_out(noun: str, first: int, last: int) -> str:
    """Return the sentence that says what a picture does not show."""
    if first == last:
        return f"{noun.capitalize()} {first} is left out."
    return f"{noun.capitalize()}s {first} to {last} are left out."


def listed(things, limit: int, between: str = ", ") -> str:
    """Return the first `limit` of `things`, and how many more there are."""
    things = list(things)
    more = [f"and {len(things) - limit} more"] if len(things) > limit else []
    return between.join([*things[:limit], *more])


def _doing(event):
    words = {"send": f"send to {event.peer}", "recv": f"recv from {event.peer}"}
    return words.get(event.kind, event.label or event.kind)


def _sides(own, other, edge_s):
    end = edge_s if own.end is None else max(own.start, own.end)
    joined = own.start
    if other is not None:
        joined = min(max(own.start, other.start), end)
    if joined > own.start:
        yield _span(own, "waiting", own.start, joined, edge_s)
    state = "moving" if own.end is not None else "stuck"
    yield _span(own, state, joined, end, edge_s)


def _span(event, state, start, end, edge_s):
    end = edge_s if end is None else max(start, end)
    return Span(event.rank, event.kind, state, start, end, event.step, event.label)
