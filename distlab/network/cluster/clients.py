"""`ClusterClients`: the clients of a cluster, each with one call after another.

    due ──▶ call ──▶ answered ──▶ pause ──▶ next call
             ▲ └─▶ timed out ──▶ unknown ──▶ next call
             └── asked again ◀─┘

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

import cloudpickle

from distlab.network.client import Client, ClientSession
from distlab.network.cluster.disk import serialize
from distlab.network.copies import ATOMS
from distlab.trace import Call, Operation

__all__ = ["BY_HAND", "ClusterClients"]

BY_HAND = "you"
BY_HAND_FROM = 1_000_000  # numbers of clients, for requests of calls by hand
_RECENT_S = 1.0


class ClusterClients:
    """The clients of `count` nodes, by a clock that starts when all nodes are up.

    done: the operations that have ended, in order of their ends.
    names: the clients, in the order in which they were added. notes: for the trace,
    each attempt, ("asked", time, request, attempt, name, node, call), and response that
    counts, ("answered", time, node, its number there).
    to_send: attempts still to be sent, as (node, attempt, request, call in bytes).
    recent: (time, node, outcome) of attempts that ended in the last second.
    """

    def __init__(self, count: int, clock: Callable[[], float]):
        self._count, self._clock = count, clock
        self.done, self.names, self.notes, self.recent = [], [], [], deque()
        self.to_send = []
        self._waiting = {}  # request -> the session that waits for its answer
        self._due, self._order = [], itertools.count()
        self._sessions, self._stopped = set(), set()
        self._by_hand = {}  # session -> the callback for its Operation
        self._numbers_by_hand = itertools.count(BY_HAND_FROM)

    def add(self, clients: list[Client], since_s: float) -> None:
        """Add clients, whose start_s counts from `since_s`."""
        numbers = sum(isinstance(name, int) for name in self.names)
        for number, client in enumerate(clients, numbers):
            session = ClientSession(number, client, number, self._count)
            self.names.append(number)
            self._sessions.add(session)
            self._at(since_s + client.start_s, self._ask, session)

    def by_hand(
        self, node: int, call: Call, timeout_s: float, ended: Callable[[Operation], Any]
    ) -> None:
        """Make one call; `ended` is called with its Operation."""
        if BY_HAND not in self.names:
            self.names.append(BY_HAND)
        client, number = (
            Client(node, (call,), timeout_s=timeout_s),
            self._numbers_by_hand,
        )
        session = ClientSession(BY_HAND, client, next(number), self._count)
        self._sessions.add(session)
        self._by_hand[session] = ended
        self._ask(session)

    def next_s(self) -> float:
        """Return the time of the next call or time-out, inf if there is none."""
        return self._due[0][0] if self._due else float("inf")

    def tick(self) -> None:
        """Make the calls and time-outs that are due."""
        while self._due and self._due[0][0] <= self._clock():
            _, _, what, about = heapq.heappop(self._due)
            what(*about)

    @property
    def busy(self) -> bool:
        """True if any client has calls left, or waits for a response."""
        return bool(self._sessions)

    def stop(self) -> None:
        """Stop all clients from making further calls; open calls stay open."""
        self._stopped |= self._sessions - self._by_hand.keys()
        self._sessions -= {one for one in self._stopped if one.request is None}

    def answered(
        self,
        node: int,
        number: int,
        request: int,
        outcome: str,
        result: Any,
        to: int | None,
    ) -> None:
        """Record a node's response, unless its client no longer waits for it."""
        session = self._waiting.get(request)
        if session is not None and session.hears(request, node, outcome == "ok"):
            self.notes.append(("answered", self._clock(), node, number))
            self._end(session, outcome, result, to)

    def operations(self) -> list[Operation]:
        """Return all operations; those without a response are unknown."""
        waiting = list(self._waiting.values())
        return [*self.done, *(session.operation() for session in waiting)]

    def _at(self, when_s, what, *about):
        heapq.heappush(self._due, (when_s, next(self._order), what, about))

    def _ask(self, session):
        """Make a client's next call, if it has one, or its open call once more."""
        if session in self._stopped and session.request is None:
            return self._sessions.discard(session)
        now = self._clock()
        call = session.ask(now)
        if call is None:
            return self._sessions.discard(session)
        request, (_, attempt) = session.request, session.attempt
        node = session.attempts.node
        self._waiting[request] = session
        self.notes.append(("asked", now, request, attempt, session.name, node, call))
        timeout_s = session.client.timeout_s
        self._at(now + timeout_s, self._time_out, session, session.attempt)
        self.to_send.append((node, attempt, request, _in_bytes(call)))

    def _time_out(self, session, attempt):
        if session.request is not None and session.attempt == attempt:
            self._end(session, "unknown")

    def _end(self, session, outcome, result=None, to=None):
        """End an attempt: with it the call, or the client asks again, at once."""
        request, now = session.request, self._clock()
        self.recent.append((now, session.attempts.node, outcome))
        while self.recent[0][0] < now - _RECENT_S:
            self.recent.popleft()
        operation = session.end(now, outcome, result, to)
        if operation is None:
            return self._ask(session)
        del self._waiting[request]
        self.done.append(operation)
        if session in self._by_hand:
            self._by_hand.pop(session)(operation)
        self._at(now + session.client.pause_s, self._ask, session)


def _in_bytes(call):
    """Return a call as bytes, with the definitions of a notebook's classes."""
    plain = all(type(part) in ATOMS for part in call)
    return serialize(call) if plain else cloudpickle.dumps(call)
