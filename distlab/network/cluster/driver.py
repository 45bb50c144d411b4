"""`Driver`: plays the clients of a cluster, one call of each after another.

    due ──▶ call ──▶ answered ──▶ pause ──▶ next call
                 └─▶ timed out ──▶ unknown ──▶ next call

It has no clock and no socket: who drives it says what time it is, and hands over what
it asks. A client whose node is dead gets no answer, as from one that is slow or cut
off, so its call is unknown when its timeout is over, and not before: no client of a
real store knows more.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from distlab.network.arguments import Asking
from distlab.network.client import Client
from distlab.trace import Call, Operation

__all__ = ["BY_HAND", "Driver"]

BY_HAND = "you"
_LIVE_S = 1.0


@dataclass(eq=False)
class _Session:
    """One client: what it asks, and what it waits for.

    name: its number, or "you". answered: called with each Operation.
    """

    name: int | str
    client: Client
    asking: Asking
    answered: Callable = lambda operation: None
    request: int | None = None
    result: Any = None
    stopped: bool = False


@dataclass
class _Open:
    """A request that was handed over, and not answered yet."""

    session: _Session
    call: Call
    start_s: float


@dataclass
class Driver:
    """The clients, by a clock that counts from when all nodes were up.

    ask: called with a node, a request's number and a call, to hand them over.
    done: the operations that came to an end, in the order in which they did.
    names: the clients, in the order in which they came. notes: for the trace, each
    call, ("call", time, request, name, node, call), and answer, ("answer", time,
    request).
    recent: (time, node, outcome) of what ended in the last second.
    """

    ask: Callable[[int, int, Call], None]
    clock: Callable[[], float]
    done: list[Operation] = field(default_factory=list)
    names: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    recent: deque = field(default_factory=deque)
    open: dict[int, _Open] = field(default_factory=dict)
    _due: list = field(default_factory=list)
    _sessions: set = field(default_factory=set)
    _requests: Any = field(default_factory=lambda: itertools.count(1))
    _order: Any = field(default_factory=itertools.count)

    def add(self, clients: list[Client], since_s: float) -> None:
        """Begin with some more clients, whose start_s counts from `since_s`."""
        numbers = sum(isinstance(name, int) for name in self.names)
        for number, client in enumerate(clients, numbers):
            session = _Session(number, client, Asking(number, client.calls))
            self.names.append(number)
            self._sessions.add(session)
            self._at(since_s + client.start_s, self._next, session)

    def by_hand(self, node: int, call: Call, timeout_s: float, answered) -> None:
        """Make one call; its Operation is given to `answered`."""
        if BY_HAND not in self.names:
            self.names.append(BY_HAND)
        client = Client(node, (call,), timeout_s=timeout_s)
        session = _Session(BY_HAND, client, Asking(0, (call,)), answered)
        self._sessions.add(session)
        self._next(session)

    def next_s(self) -> float:
        """Return when there is something to do."""
        return self._due[0][0] if self._due else float("inf")

    def tick(self) -> None:
        """Do what is due: make calls, give up waiting."""
        while self._due and self._due[0][0] <= self.clock():
            _, _, what, *about = heapq.heappop(self._due)
            what(*about)

    @property
    def busy(self) -> bool:
        """Whether any client has something to ask still, or waits for an answer."""
        return bool(self._sessions)

    def stop(self) -> None:
        """Have no client make another call; what is not answered yet stays open."""
        for session in list(self._sessions):
            if session.name != BY_HAND:
                session.stopped = True
                if session.request is None:
                    self._sessions.discard(session)

    def answered(self, request: int, outcome: str, result: Any) -> None:
        """Take a node's answer, unless its client waits no longer."""
        if request in self.open:
            self.notes.append(("answer", self.clock(), request))
            self._end(request, outcome, result)

    def operations(self) -> list[Operation]:
        """Return all operations; those that wait for an answer are unknown."""
        waiting = [
            self._operation(one, "unknown", None) for one in list(self.open.values())
        ]
        return [*self.done, *waiting]

    def _at(self, when_s, what, *about):
        heapq.heappush(self._due, (when_s, next(self._order), what, *about))

    def _next(self, session):
        """Have a client make its next call, if it has one."""
        call = None if session.stopped else session.asking.next(session.result)
        if call is None:
            return self._sessions.discard(session)
        request = session.request = next(self._requests)
        node = session.client.node
        start = self.clock()
        self.open[request] = _Open(session, call, start)
        self.notes.append(("call", start, request, session.name, node, call))
        self._at(start + session.client.timeout_s, self._give_up, request)
        self.ask(node, request, call)

    def _give_up(self, request):
        if request in self.open:
            self._end(request, "unknown", None)

    def _end(self, request, outcome, result):
        one = self.open.pop(request)
        now, session = self.clock(), one.session
        operation = self._operation(one, outcome, result)
        self.done.append(operation)
        self.recent.append((now, session.client.node, outcome))
        while self.recent[0][0] < now - _LIVE_S:
            self.recent.popleft()
        session.request, session.result = None, operation.result
        session.answered(operation)
        self._at(now + session.client.pause_s, self._next, session)

    def _operation(self, one, outcome, result):
        end = None if outcome == "unknown" else self.clock()
        result = result if outcome == "ok" else None
        name = one.session.name
        return Operation(name, *one.call, one.start_s, end, outcome, result)
