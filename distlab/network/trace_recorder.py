"""`TraceRecorder`: the events of a run in this process, as they happen.

A run on a virtual clock and a replay of a schedule record theirs with it.
"""

from collections import defaultdict
from itertools import chain
from typing import Any

from distlab.errors import NodeFailed
from distlab.network.describe import describe_call, describe_response, shorten
from distlab.network.node_diagnosis import failure_label
from distlab.trace import Call, Event, Trace

__all__ = ["CRASHES", "LOST", "TraceRecorder", "lost"]

# Step of a schedule -> what the disk loses in it, as in a `Crash`.
CRASHES = {"crash": "", "power_loss": "unsynced", "disk_loss": "disk"}
LOST = {"unsynced": "unsynced writes", "last write": "a write", "disk": "everything"}


class TraceRecorder:
    """The trace of a run so far; clients come after the nodes.

    now: the time, which the run sets. events: those so far. messages: their number.
    traced: whether events are recorded at all.
    """

    traced = True

    def __init__(self, nodes: int, clients: int):
        self.nodes, self._clients = nodes, clients
        self.now, self.events, self.messages = 0.0, [], 0
        self._lasting = defaultdict(list)  # (node, words) -> its events that last

    def event(
        self, who: int, kind: str, peer: int | None, step: int, label: str
    ) -> None:
        """Record an event of now."""
        if self.traced:  # an untraced run is as fast as it can be
            event = Event(who, self.now, self.now, kind, peer, 0, step, label)
            self.events.append(event)

    def mark(self, node: int, words: str, kind: str = "mark") -> None:
        """Record a mark of a node, or a fault."""
        self.event(node, kind, None, 0, words)

    def step(self, kind: str, a: int = 0, b: int = 0, words: str = "") -> None:
        """Record a timer or a fault, in the terms of a `ScheduleStep`."""
        if not self.traced:
            return
        partition, cut_off = f"partition {words}", f"cut off from node {b}"
        match kind:
            case "timer":
                self.mark(a, f"timer {shorten(words)}")
            case "crash" | "power_loss" | "disk_loss":
                self.crashed(a, CRASHES[kind])
            case "restart":
                self.mark(a, "restart", "fault")
            case "split":
                self._begin(0, partition, "fault")
            case "heal":
                self._end(0, partition)
            case "cut":
                self._begin(a, cut_off, "mark")
            case "mend":
                self._end(a, cut_off)
            case "clock":
                self.mark(a, f"clock reads {float(words):.6g} s")

    def crashed(self, node: int, lost: str) -> None:
        """Record a crash of a node, and what its disk has lost."""
        if lost:
            self.mark(node, f"disk loses {LOST[lost]}")
        self.mark(node, "crash", "fault")

    def _begin(self, node, words, kind):
        """Record what lasts to the end of the run, or to its `_end`."""
        self._lasting[node, words].append(len(self.events))
        self.mark(node, words, kind)

    def _end(self, node, words):
        at = self._lasting[node, words].pop(0)
        self.events[at] = self.events[at]._replace(end=self.now)

    def asked(self, number: int, node: int, call: Call, heard: bool) -> None:
        """Record a client's call of a node."""
        if self.traced:
            self._exchange(self.nodes + number, node, describe_call(call), heard)

    def answered(
        self, node: int, number: int, call: Call, result: Any, why: Any, heard: bool
    ) -> None:
        """Record a response to a client; why: it was refused, None if it was not."""
        if self.traced:
            refusal = f"refused: {why}" if why else "refused"
            words = describe_response(call, result) if why is None else refusal
            self._exchange(node, self.nodes + number, words, heard)

    def _exchange(self, src, dst, words, heard):
        """Record a message between a client and its node, which takes no time."""
        self.messages += 1
        words = shorten(words)
        self.event(src, "send", dst, self.messages, words if heard else lost(words))
        if heard:
            self.event(dst, "recv", src, self.messages, words)

    def trace(self) -> Trace:
        """Return the trace until now."""
        events = list(self.events)
        for at in chain.from_iterable(self._lasting.values()):
            events[at] = events[at]._replace(end=self.now)
        size = self.nodes + self._clients
        return Trace(size, events, who="node", clients=self._clients)

    def failed(self, error: NodeFailed) -> None:
        """Record a failure, and attach the trace to its exception."""
        self.mark(error.node, failure_label(error), "fault")
        error.trace = self.trace()


def lost(words: str) -> str:
    """Return the label of a message that is dropped."""
    return f"dropped: {words}"
