"""A state while it is being changed by one step: what each kind of step does."""

from bisect import insort
from typing import Any

from distlab.network.failure import MOST_TO_ITSELF, talks_to_itself
from distlab.network.node import Reply, Save, Send, SetTimer
from distlab.network.schedules.states import Lives, Pending, State

__all__ = ["ASIDE", "Draft"]

ASIDE = 1_000_000  # is added to the round of a message that is put aside


class Draft:
    """A state while it is being changed by one step; its methods are the steps."""

    def __init__(self, lives: Lives, state: State):
        self.lives, self.before = lives, state
        self.nodes, self.lived = list(state.nodes), list(state.lives)
        self.disks, self.timers = list(state.disks), list(state.timers)
        self.pending, self.clients = list(state.pending), list(state.clients)
        self.past = list(state.past)
        self.changed = {}

    def state(self) -> State:
        """Return the state that it has become."""
        return self.before._replace(
            nodes=tuple(self.nodes),
            lives=tuple(self.lived),
            disks=tuple(self.disks),
            timers=tuple(self.timers),
            pending=tuple(self.pending),
            clients=tuple(self.clients),
            past=tuple(self.past),
            **self.changed,
        )

    def _count(self, what):
        self.changed[what] = getattr(self.before, what) + 1

    def begin(self, node: int) -> None:
        """Make a node's object, and start it from its disk."""
        done = self.lives.begin(node, self.lived[node], self.disks[node])
        self._done(node, done, 0)

    def aside(self, pending: Pending) -> None:
        """Let a message come after all others."""
        self.pending.remove(pending)
        insort(self.pending, pending._replace(round=pending.round + ASIDE))

    def get(self, pending: Pending) -> None:
        """Let a message arrive."""
        self.pending.remove(pending)
        self._arrives(pending)

    def copy(self, pending: Pending) -> None:
        """Let a message arrive, and be under way still."""
        self._count("copies")
        self._arrives(pending)

    def lose(self, pending: Pending) -> None:
        """Let a message never arrive."""
        self._count("losses")
        self.pending.remove(pending)

    def _arrives(self, pending):
        round, src, dst, number = pending
        done = self.lives.do(self.nodes[dst], "message", src, number)
        self._done(dst, done, round % ASIDE)

    def call(self, number: int) -> None:
        """Let a client make its next call."""
        index, _, results = self.clients[number]
        call = self.lives.call(number, index, results)
        self.clients[number] = (index, True, results)
        self._note((0, number))
        node = self.lives.clients[number].node
        if self.nodes[node]:
            request = 1 + number + len(self.clients) * index
            done = self.lives.do(self.nodes[node], "client", request, call)
            self._done(node, done, 0)

    def timer(self, node: int, timer: tuple) -> None:
        """Let a timer run out."""
        self._count("fired")
        self.timers[node] = tuple(t for t in self.timers[node] if t != timer)
        done = self.lives.do(self.nodes[node], "timer", timer[1])
        self._done(node, done, timer[0])

    def leave(self, number: int) -> None:
        """Let a client give up its call."""
        self._free(number, 0)

    def crash(self, node: int) -> None:
        """Let a node die, with its timers and what is on its way to it."""
        self._count("crashes")
        self.nodes[node], self.timers[node] = 0, ()
        self.pending = [p for p in self.pending if p.dst != node]

    def restart(self, node: int) -> None:
        """Let a dead node start again."""
        self.lived[node] += 1
        self.begin(node)

    def split(self, way: tuple) -> None:
        """Let the network split; what is under way between two sides is lost."""
        self._count("splits")
        self.changed["sides"] = way
        self.pending = [p for p in self.pending if way[p.src] == way[p.dst]]

    def heal(self) -> None:
        """Let the network be whole again."""
        self.changed["sides"] = None

    def _done(self, node, done, round):
        """Let a node's effects happen; messages to itself arrive at once."""
        to_itself, heard = [], 0
        while True:
            memory, effects, failed = done
            if failed:
                self.changed["failed"] = failed
                return
            self.nodes[node] = memory
            for kind, *about in effects:
                if kind is Send and about[0] == node:
                    to_itself.append(about[1])
                elif kind is Send:
                    self._send(round + 1, node, *about)
                elif kind is Reply:
                    self._answer(*about)
                elif kind is Save:
                    disk = {**dict(self.disks[node]), about[0]: about[1]}
                    self.disks[node] = tuple(sorted(disk.items()))
                else:
                    self._set(node, round + 1, kind, about[0])
            if not to_itself:
                return
            if (heard := heard + 1) > MOST_TO_ITSELF:
                kind = type(self.lives.shelf[memory].node).__name__
                raise talks_to_itself(node, kind)
            done = self.lives.do(memory, "message", node, to_itself.pop(0))

    def _send(self, round, src, dst, number):
        sides = self.changed.get("sides", self.before.sides)
        if self.nodes[dst] and (sides is None or sides[src] == sides[dst]):
            insort(self.pending, Pending(round, src, dst, number))

    def _set(self, node, round, kind, name):
        timers = [timer for timer in self.timers[node] if timer[1] != name]
        timers += [(round, name)] if kind is SetTimer else []
        self.timers[node] = tuple(sorted(timers))

    def _answer(self, request, outcome, result):
        index, number = divmod(request - 1, len(self.clients))
        at, waits, _ = self.clients[number]
        if waits and at == index:
            self._note((1, number, outcome, result))
            self._free(number, result if outcome == "ok" else 0)

    def _free(self, number, result):
        index, _, results = self.clients[number]
        results = self.lives.told(number, results, result)
        self.clients[number] = (index + 1, False, results)

    def _note(self, entry: Any):
        """Add to the past; of calls, or answers, in a row the order says nothing."""
        past = self.past
        at = len(past)
        while at and past[at - 1][0] == entry[0] and past[at - 1] > entry:
            at -= 1
        past.insert(at, entry)
