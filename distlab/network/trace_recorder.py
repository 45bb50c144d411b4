"""`TraceRecorder`: the events of a run in this process, as they happen.

A run on a virtual clock and a replay of a schedule record theirs with it.
"""

from typing import Any

from distlab.errors import NodeFailed
from distlab.network.describe import describe_call, describe_response, shorten
from distlab.trace import Call, Event, Trace

__all__ = ["TraceRecorder", "lost"]


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
        self._lasting = {}  # (node, words) of what lasts -> index of its event

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

    def crashed(self, node: int, lost: str) -> None:
        """Record a crash of a node, and what its disk has lost."""
        if lost:
            self.mark(node, f"disk loses {LOST[lost]}")
        self.mark(node, "crash", "fault")

    def lasting(self, node: int, words: str, kind: str = "mark") -> None:
        """Record what lasts until `over`, or else to the end of the run."""
        if self.traced:
            self._lasting[node, words] = len(self.events)
            self.mark(node, words, kind)

    def over(self, node: int, words: str) -> None:
        """End a fault that lasts."""
        if self.traced:
            at = self._lasting.pop((node, words))
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
        for at in self._lasting.values():
            events[at] = events[at]._replace(end=self.now)
        size = self.nodes + self._clients
        return Trace(size, events, who="node", clients=self._clients)

    def failed(self, error: NodeFailed) -> None:
        """Record a failure, and attach the trace to its exception."""
        raised = isinstance(error.cause, BaseException)
        what = f"raised {type(error.cause).__name__}" if raised else "failed"
        self.mark(error.node, what, "fault")
        error.trace = self.trace()


def lost(words: str) -> str:
    """Return the label of a message that is dropped."""
    return f"dropped: {words}"
