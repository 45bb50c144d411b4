"""`ClusterClients`: the clients of a cluster, each with one call after another.

    due ──▶ call ──▶ answered ──▶ pause ──▶ next call
             ▲ └─▶ timed out ──▶ unknown ──▶ next call
             └── asked again ◀─┘

It has no clock and no socket: its owner passes in the clock and a function that plans
its events, and sends its calls. A
client whose node is dead gets no response, as from one that is slow or partitioned,
so its call is unknown when its time-out is over, and not before, as for a client of a
real store.
"""

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import cloudpickle

from distlab.network.client import Client, ClientDriver, ClientSession
from distlab.network.cluster.disk import serialize
from distlab.network.copies import ATOMS
from distlab.network.node import session_of
from distlab.trace import Call, Operation

__all__ = ["BY_HAND", "ClusterClients"]

BY_HAND = "you"
BY_HAND_FROM = 1_000_000  # numbers of clients, for requests of calls by hand
_RECENT_S = 1.0


class ClusterClients(ClientDriver):
    """The clients of `count` nodes, by a clock that starts when all nodes are up.

    names: the clients, in the order in which they were added. notes: for the trace,
    each attempt, ("asked", time, request, attempt, name, node, call), and response that
    counts, ("answered", time, node, its number there).
    to_send: attempts still to be sent, as (node, attempt, request, call in bytes).
    recent: (time, node, outcome) of attempts that ended in the last second.
    """

    def __init__(self, count: int, clock: Callable[[], float], later: Callable):
        super().__init__()
        self._count, self._clock, self._later = count, clock, later
        self.names, self.notes, self.to_send, self.recent = [], [], [], deque()
        self._by_hand = {}  # session -> the callback for its Operation
        self._numbers_by_hand = itertools.count(BY_HAND_FROM)

    @property
    def now(self) -> float:
        """The present time."""
        return self._clock()

    def add(self, clients: list[Client], since_s: float) -> None:
        """Add clients, whose start_s counts from `since_s`."""
        numbers = sum(isinstance(name, int) for name in self.names)
        for number, client in enumerate(clients, numbers):
            session = self._opened(number, client, number)
            self._later(since_s + client.start_s, self._ask, session, session.attempt)

    def by_hand(
        self, node: int, call: Call, timeout_s: float, ended: Callable[[Operation], Any]
    ) -> None:
        """Make one call; `ended` is called with its Operation."""
        client = Client(node, (call,), timeout_s=timeout_s)
        session = self._opened(BY_HAND, client, next(self._numbers_by_hand))
        self._by_hand[session] = ended
        self._ask(session, session.attempt)

    def _opened(self, name, client, number):
        if name not in self.names:
            self.names.append(name)
        session = ClientSession(name, client, number, self._count)
        self.sessions[number] = session
        return session

    def stop(self) -> None:
        """Stop all clients from making further calls; open calls stay open."""
        for number, session in list(self.sessions.items()):
            session.stopped = session not in self._by_hand
            if session.stopped and session.request is None:
                del self.sessions[number]

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
        session = self.sessions.get(session_of(request)[0])
        if session is not None and session.hears(request, node, outcome == "ok"):
            self.notes.append(("answered", self.now, node, number))
            self._ends(session, outcome, result, to)

    def _call(self, session, call):
        request, (_, attempt) = session.request, session.attempt
        about = request, attempt, session.name, session.attempts.node, call
        self.notes.append(("asked", self.now, *about))
        self.to_send.append((session.attempts.node, attempt, request, _in_bytes(call)))

    def _ends(self, session, outcome, result=None, to=None):
        self.recent.append((self.now, session.attempts.node, outcome))
        while self.recent[0][0] < self.now - _RECENT_S:
            self.recent.popleft()
        operation = super()._ends(session, outcome, result, to)
        if operation is not None and session in self._by_hand:
            self._by_hand.pop(session)(operation)


def _in_bytes(call):
    """Return a call as bytes, with the definitions of a notebook's classes."""
    plain = all(type(part) in ATOMS for part in call)
    return serialize(call) if plain else cloudpickle.dumps(call)
