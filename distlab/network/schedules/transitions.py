"""Transitions: the possible steps of a `State`, and the state after each.

The steps that happen when nothing goes wrong have a default order: every message is
delivered, in the order of the rounds in which they were sent, then the next client
makes its call. A postponed message comes when no other step is left, then timers run
out, and last a client times out. All other steps, such as a crash, are faults, and have
limits.
"""

from bisect import insort
from itertools import combinations
from typing import Any, NamedTuple

from distlab.errors import NodeFailed
from distlab.network.node import Reply, Save, Send, SetTimer
from distlab.network.node_diagnosis import MOST_TO_ITSELF, talks_to_itself
from distlab.network.schedules.schedule import ScheduleStep
from distlab.network.schedules.state import NodeMemo, Pending, State

__all__ = ["POSTPONED", "FaultLimits", "Transitions", "all_splits"]

POSTPONED = 1_000_000  # is added to the round of a message that is postponed


class _Successor:
    """A mutable copy of a state, changed by one step; its methods are the steps."""

    def __init__(self, memo: NodeMemo, state: State):
        self.memo, self.before = memo, state
        self.nodes, self.restarts = list(state.nodes), list(state.restarts)
        self.disks, self.timers = list(state.disks), list(state.timers)
        self.pending, self.clients = list(state.pending), list(state.clients)
        self.past = list(state.past)
        self.changed = {}

    def state(self) -> State:
        """Return the changed state."""
        return self.before._replace(
            nodes=tuple(self.nodes),
            restarts=tuple(self.restarts),
            disks=tuple(self.disks),
            timers=tuple(self.timers),
            pending=tuple(self.pending),
            clients=tuple(self.clients),
            past=tuple(self.past),
            **self.changed,
        )

    def _count(self, what):
        self.changed[what] = getattr(self.before, what) + 1

    def start(self, node: int) -> None:
        """Make a node's object, and start it from its disk."""
        done = self.memo.start(node, self.restarts[node], self.disks[node])
        self._done(node, done, 0)

    def postpone(self, pending: Pending) -> None:
        """Reorder a message after all others."""
        self.pending.remove(pending)
        insort(self.pending, pending._replace(round=pending.round + POSTPONED))

    def deliver(self, pending: Pending) -> None:
        """Deliver a message."""
        self.pending.remove(pending)
        self._arrives(pending)

    def duplicate(self, pending: Pending) -> None:
        """Deliver a message, and keep it under way."""
        self._count("duplicates")
        self._arrives(pending)

    def drop(self, pending: Pending) -> None:
        """Drop a message."""
        self._count("drops")
        self.pending.remove(pending)

    def _arrives(self, pending):
        round, src, dst, number = pending
        done = self.memo.do(self.nodes[dst], "message", src, number)
        self._done(dst, done, round % POSTPONED)

    def call(self, number: int) -> None:
        """Make a client's next call."""
        index, _, results = self.clients[number]
        call = self.memo.call(number, index, results)
        self.clients[number] = (index, True, results)
        self._note((0, number))
        node = self.memo.clients[number].node
        if self.nodes[node]:
            request = 1 + number + len(self.clients) * index
            done = self.memo.do(self.nodes[node], "client", request, call)
            self._done(node, done, 0)

    def timer(self, node: int, timer: tuple) -> None:
        """Fire a timer."""
        self._count("fired")
        self.timers[node] = tuple(t for t in self.timers[node] if t != timer)
        done = self.memo.do(self.nodes[node], "timer", timer[1])
        self._done(node, done, timer[0])

    def time_out(self, number: int) -> None:
        """End a client's wait for a response; the outcome is unknown."""
        self._free(number, 0)

    def crash(self, node: int) -> None:
        """Crash a node; its timers and the messages under way to it are lost."""
        self._count("crashes")
        self.nodes[node], self.timers[node] = 0, ()
        self.pending = [p for p in self.pending if p.dst != node]

    def restart(self, node: int) -> None:
        """Start a dead node again."""
        self.restarts[node] += 1
        self.start(node)

    def split(self, way: tuple) -> None:
        """Partition the network; drop messages under way between two sides."""
        self._count("splits")
        self.changed["sides"] = way
        self.pending = [p for p in self.pending if way[p.src] == way[p.dst]]

    def heal(self) -> None:
        """End the network partition."""
        self.changed["sides"] = None

    def _done(self, node, done, round):
        """Apply a node's effects; deliver its messages to itself at once."""
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
                kind = type(self.memo.values[memory].node).__name__
                raise talks_to_itself(node, kind)
            done = self.memo.do(memory, "message", node, to_itself.pop(0))

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
        results = self.memo.with_result(number, results, result)
        self.clients[number] = (index + 1, False, results)

    def _note(self, entry: Any):
        """Add an entry to the past; sort calls in a row, and responses in a row."""
        past = self.past
        at = len(past)
        while at and past[at - 1][0] == entry[0] and past[at - 1] > entry:
            at -= 1
        past.insert(at, entry)


class FaultLimits(NamedTuple):
    """Limits of the faults in one schedule.

    splits: how often the network may split. ways: how, each as every node's side.
    timers: how many may run out. steps: the maximal length of a schedule.
    """

    crashes: int
    drops: int
    duplicates: int
    splits: int
    ways: tuple
    timers: int
    steps: int


def all_splits(nodes: int) -> tuple:
    """Return the sides of each node for all ways to split so many nodes in two.

    Of more than five nodes only one, or about one half, is cut off.
    """
    sizes = range(1, nodes // 2 + 1) if nodes <= 5 else (1, nodes // 2)
    ways = {}
    for size in sizes:
        for side in combinations(range(nodes), size):
            away = [int(node in side) for node in range(nodes)]
            ways[tuple(side != away[0] for side in away)] = None
            if nodes > 5 and size > 1:
                break
    return tuple(tuple(map(int, way)) for way in ways)


class Transitions:
    """The steps of one protocol, its clients and the limits of its faults."""

    def __init__(self, memo: NodeMemo, limits: FaultLimits):
        self.memo, self.limits = memo, limits

    def first(self) -> State:
        """Return the state in which all nodes have started.

        Raises: NodeFailed if one has not.
        """
        nodes, clients = self.memo.nodes, len(self.memo.clients)
        empty = ((),) * nodes
        none = (0,) * nodes
        asks = ((0, False, ()),) * clients
        successor = _Successor(self.memo, State(none, none, empty, empty, (), asks))
        for node in range(nodes):
            successor.start(node)
        state = successor.state()
        if state.failed:
            raise self.failure(state)
        return state

    def failure(self, state: State) -> NodeFailed:
        """Return the NodeFailed of the node that has failed."""
        return self.memo.failures[state.failed]

    def default(self, state: State) -> list[tuple]:
        """Return the steps without a fault, in the default order; none at the end."""
        pending = state.pending
        soon = [p for p in pending if p[0] < POSTPONED]
        steps = [("deliver", p) for p in soon]
        steps += [("restart", n) for n, memory in enumerate(state.nodes) if not memory]
        calls, waiting = self._calls(state)
        steps += calls
        steps += [("deliver", p) for p in pending[len(soon) :]]
        if waiting or not state.clients:
            steps += self._timers(state)
        if state.sides is not None:
            steps.append(("heal",))
        if waiting and (not steps or state.crashes or state.drops or state.splits):
            steps += [("time_out", n) for n in waiting if self._asks_more(state, n)]
        return steps

    def _calls(self, state):
        """Return the steps of calls, and the clients that wait for an answer."""
        calls, waiting = [], []
        for number, (index, waits, results) in enumerate(state.clients):
            if waits:
                waiting.append(number)
            elif self.memo.call(number, index, results):
                calls.append((index, number))
        return [("call", number) for _, number in sorted(calls)], waiting

    def _timers(self, state):
        if state.fired >= self.limits.timers:
            return []
        timers = [
            (timer, node) for node, set_ in enumerate(state.timers) for timer in set_
        ]
        return [("timer", node, timer) for timer, node in sorted(timers)]

    def _asks_more(self, state, number):
        index, _, results = state.clients[number]
        return self.memo.call(
            number, index + 1, self.memo.with_result(number, results, 0)
        )

    def faults(self, state: State) -> list[tuple]:
        """Return the steps that are faults, and timers that run out early."""
        limits, steps = self.limits, []
        if state.clients and not any(waits for _, waits, _ in state.clients):
            steps += self._timers(state)
        if state.crashes < limits.crashes:
            alive = [n for n, memory in enumerate(state.nodes) if memory]
            steps += [("crash", node) for node in alive]
        if state.drops < limits.drops:
            steps += [("drop", p) for p in state.pending]
        if state.duplicates < limits.duplicates:
            steps += [("duplicate", p) for p in state.pending]
        if state.splits < limits.splits and state.sides is None:
            steps += [("split", way) for way in limits.ways]
        return steps

    def all(self, state: State) -> list[tuple]:
        """Return all steps that can be taken."""
        return self.default(state) + self.faults(state)

    def take(self, state: State, step: tuple) -> State:
        """Return the state after a step."""
        successor = _Successor(self.memo, state)
        getattr(successor, step[0])(*step[1:])
        return successor.state()

    def postpone(self, state: State, pending: Pending) -> State:
        """Return the state in which a message comes after all others."""
        return self.take(state, ("postpone", pending))

    def in_words(self, state: State, step: tuple) -> ScheduleStep:
        """Return a step in words."""
        kind, *about = step
        if kind in ("deliver", "duplicate", "drop"):
            _, src, dst, number = about[0]
            return ScheduleStep(kind, src, dst, self.memo.words(number))
        if kind == "call":
            index, _, results = state.clients[about[0]]
            words = self.memo.call_words(self.memo.call(about[0], index, results))
            return ScheduleStep(kind, about[0], self.memo.clients[about[0]].node, words)
        if kind == "timer":
            return ScheduleStep(kind, about[0], 0, self.memo.words(about[1][1]))
        if kind == "split":
            return ScheduleStep(kind, 0, 0, _describe_sides(about[0]))
        return ScheduleStep(kind, *about)

    def find(self, state: State, step: ScheduleStep) -> tuple | None:
        """Return the step with these words, or None if it cannot happen now."""
        for each in self.all(state):
            if each[0] == step.kind and self.in_words(state, each) == step:
                return each
        return None


def _describe_sides(side_of: tuple) -> str:
    """Return the sides of a partition in words, such as "0 | 1 2"."""
    sides = {}
    for node, side in enumerate(side_of):
        sides.setdefault(side, []).append(str(node))
    return " | ".join(" ".join(side) for side in sides.values())
