"""`ClusterClients`: the clients of a cluster, each with one call after another.

    due ──▶ call ──▶ answered ──▶ pause ──▶ next call
                 └─▶ timed out ──▶ unknown ──▶ next call

It has no clock and no socket: its owner passes in the clock and sends its calls. A
client whose node is dead gets no response, as from one that is slow or partitioned,
so its call is unknown when its time-out is over, and not before, as for a client of a
real store.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

from distlab.network.client import Client, ClientSession
from distlab.trace import Call, Operation

__all__ = ["BY_HAND", "ClusterClients"]

BY_HAND = "you"
BY_HAND_FROM = 1_000_000  # numbers of clients, for requests of calls by hand
_RECENT_S = 1.0


class ClusterClients:
    """The clients, by a clock that starts when all nodes are up.

    ask: called with a node, a request's number and a call, to send them.
    done: the operations that have ended, in order of their ends.
    names: the clients, in the order in which they were added. notes: for the trace,
    each call, ("call", time, request, name, node, call), and response, ("answer", time,
    request).
    recent: (time, node, outcome) of operations that ended in the last second.
    """

    def __init__(
        self, ask: Callable[[int, int, Call], None], clock: Callable[[], float]
    ):
        self._ask, self._clock = ask, clock
        self.done, self.names, self.notes, self.recent = [], [], [], deque()
        self._waiting = {}  # request -> the session that waits for its answer
        self._due, self._order = [], itertools.count()
        self._sessions, self._stopped = set(), set()
        self._by_hand = {}  # session -> the callback for its Operation
        self._hands = itertools.count(BY_HAND_FROM)

    def add(self, clients: list[Client], since_s: float) -> None:
        """Add clients, whose start_s counts from `since_s`."""
        numbers = sum(isinstance(name, int) for name in self.names)
        for number, client in enumerate(clients, numbers):
            session = ClientSession(number, client, number, 1)
            self.names.append(number)
            self._sessions.add(session)
            self._at(since_s + client.start_s, self._next, session)

    def by_hand(
        self, node: int, call: Call, timeout_s: float, ended: Callable[[Operation], Any]
    ) -> None:
        """Make one call; `ended` is called with its Operation."""
        if BY_HAND not in self.names:
            self.names.append(BY_HAND)
        client = Client(node, (call,), timeout_s=timeout_s)
        session = ClientSession(BY_HAND, client, next(self._hands), 1)
        self._sessions.add(session)
        self._by_hand[session] = ended
        self._next(session)

    def next_s(self) -> float:
        """Return the time of the next call or time-out, inf if there is none."""
        return self._due[0][0] if self._due else float("inf")

    def tick(self) -> None:
        """Make the calls and time-outs that are due."""
        while self._due and self._due[0][0] <= self._clock():
            _, _, what, about = heapq.heappop(self._due)
            what(about)

    @property
    def busy(self) -> bool:
        """True if any client has calls left, or waits for a response."""
        return bool(self._sessions)

    def stop(self) -> None:
        """Stop all clients from making further calls; open calls stay open."""
        self._stopped |= self._sessions - self._by_hand.keys()
        self._sessions -= {one for one in self._stopped if one.request is None}

    def answered(self, request: int, outcome: str, result: Any) -> None:
        """Record a node's response, unless its client has timed out."""
        if request in self._waiting:
            self.notes.append(("answer", self._clock(), request))
            self._end(request, outcome, result)

    def operations(self) -> list[Operation]:
        """Return all operations; those without a response are unknown."""
        waiting = list(self._waiting.values())
        return [*self.done, *(session.operation() for session in waiting)]

    def _at(self, when_s, what, about):
        heapq.heappush(self._due, (when_s, next(self._order), what, about))

    def _next(self, session):
        """Make a client's next call, if it has one."""
        node, now = session.client.node, self._clock()
        call = None if session in self._stopped else session.ask(now)
        if call is None:
            return self._sessions.discard(session)
        request = session.request
        self._waiting[request] = session
        self.notes.append(("call", now, request, session.name, node, call))
        self._at(now + session.client.timeout_s, self._time_out, request)
        self._ask(node, request, call)

    def _time_out(self, request):
        if request in self._waiting:
            self._end(request, "unknown", None)

    def _end(self, request, outcome, result):
        session, now = self._waiting.pop(request), self._clock()
        self.done.append(session.end(now, outcome, result))
        self.recent.append((now, session.client.node, outcome))
        while self.recent[0][0] < now - _RECENT_S:
            self.recent.popleft()
        if session in self._by_hand:
            self._by_hand.pop(session)(self.done[-1])
        self._at(now + session.client.pause_s, self._next, session)
