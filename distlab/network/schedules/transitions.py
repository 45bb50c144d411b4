"""Transitions: the possible steps of a `State`, and the state after each.

The steps that happen when nothing goes wrong have a default order: every message is
delivered, in the order of the rounds in which they were sent, then the next client
makes its call. A postponed message comes when no other step is left, then timers run
out, and last a client times out. All other steps, such as a crash, are faults, and have
limits.
"""

from collections.abc import Callable
from itertools import combinations, permutations
from typing import NamedTuple

from distlab.errors import NodeFailed
from distlab.network.client import ClientProgress
from distlab.network.describe import describe_call
from distlab.network.schedules.schedule import ScheduleStep
from distlab.network.schedules.state import NodeMemo, Pending, State
from distlab.network.schedules.successor import POSTPONED, Successor

__all__ = [
    "FaultLimits",
    "Transitions",
    "all_splits",
    "describe_sides",
]

_HOUR = 3600.0


class FaultLimits(NamedTuple):
    """Limits of the faults in one schedule.

    crashes to clock_jumps: how often each may happen. ways: how the network may split,
    each as every node's side. timers: how many may run out. steps: the maximal length
    of a schedule.
    """

    crashes: int = 0
    power_losses: int = 0
    disk_losses: int = 0
    drops: int = 0
    duplicates: int = 0
    splits: int = 0
    cuts: int = 0
    clock_jumps: int = 0
    timers: int = 0
    steps: int = 0
    ways: tuple = ()


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
    """The steps of one protocol, its clients and the limits of its faults.

    journaled: whether power may be lost, and disks keep what that would take.
    successor: the class that makes the next state of a state.
    """

    def __init__(
        self,
        memo: NodeMemo,
        limits: FaultLimits,
        journaled: bool = True,
        successor: Callable = Successor,
    ):
        self.memo, self.limits, self.journaled = memo, limits, journaled
        self._successor = successor

    def first(self) -> State:
        """Return the state in which all nodes have started."""
        nodes, clients = self.memo.nodes, self.memo.clients
        none, empty = (0,) * nodes, ((),) * nodes
        state = State(
            nodes=none,
            restarts=none,
            disks=(((), ()),) * nodes,
            timers=empty,
            syncs=empty,
            clocks=(0.0,) * nodes,
            clients=tuple((ClientProgress(0, client.node), ()) for client in clients),
            ghosts=self.memo.ghosts,
        )
        successor = self._successor(self.memo, state, self.journaled)
        for node in range(nodes):
            successor.start(node)
            if state.ghosts:
                successor.observe()
        return successor.state()

    def failure(self, state: State) -> NodeFailed:
        """Return the NodeFailed of the node that has failed."""
        return self.memo.failures[state.failed]

    def default(self, state: State) -> list[tuple]:
        """Return the steps without a fault, in the default order; none at the end."""
        pending = state.pending
        soon = [p for p in pending if p[0] < POSTPONED]
        steps = [("deliver", p) for p in soon]
        steps += [("synced", n) for n, syncs in enumerate(state.syncs) if syncs]
        steps += [("restart", n) for n, memory in enumerate(state.nodes) if not memory]
        calls, waiting = self._calls(state)
        steps += calls
        steps += [("deliver", p) for p in pending[len(soon) :]]
        if waiting or not state.clients:
            steps += self._timers(state)
        if state.sides is not None:
            steps.append(("heal",))
        steps += [("mend", *link) for link in state.severed]
        if waiting and (not steps or _troubled(state)):
            steps += [("time_out", n) for n in waiting if self._asks_more(state, n)]
        return steps

    def _calls(self, state):
        """Return the steps of calls, and the clients that wait for an answer."""
        calls, waiting = [], []
        for number, (attempts, _) in enumerate(state.clients):
            if attempts.waits:
                waiting.append(number)
            elif self._asks(state, number):
                calls.append((attempts.ended, number))
        return [("call", number) for _, number in sorted(calls)], waiting

    def _timers(self, state):
        if state.fired >= self.limits.timers:
            return []
        timers = [
            (timer, node) for node, set_ in enumerate(state.timers) for timer in set_
        ]
        return [("timer", node, timer) for timer, node in sorted(timers)]

    def _asks_more(self, state, number):
        attempts, results = state.clients[number]
        if attempts.tries <= self.memo.clients[number].retries:
            return True
        results = self.memo.with_result(number, results, 0)
        return self.memo.call(number, attempts.ended + 1, results)

    def faults(self, state: State) -> list[tuple]:
        """Return the steps that are faults, and timers that run out early."""
        limits, steps = self.limits, []
        if state.clients and not any(each.waits for each, _ in state.clients):
            steps += self._timers(state)
        alive = [node for node, memory in enumerate(state.nodes) if memory]
        if state.crashes < limits.crashes:
            steps += [("crash", node) for node in alive]
        if state.power_losses < limits.power_losses:
            steps += [("power_loss", node) for node in alive]
        if state.disk_losses < limits.disk_losses:
            steps += [("disk_loss", node) for node in alive]
        if state.drops < limits.drops:
            steps += [("drop", p) for p in state.pending]
        if state.duplicates < limits.duplicates:
            steps += [("duplicate", p) for p in state.pending]
        if state.splits < limits.splits and state.sides is None:
            steps += [("split", way) for way in limits.ways]
        if state.cuts < limits.cuts:
            links = permutations(range(len(state.nodes)), 2)
            steps += [("cut", *link) for link in links if link not in state.severed]
        if state.clock_jumps < limits.clock_jumps:
            clocks = enumerate(state.clocks)
            jumps = [(n, now + by_s) for n, now in clocks for by_s in (_HOUR, -_HOUR)]
            steps += [("clock", *jump) for jump in jumps]
        return steps

    def all(self, state: State) -> list[tuple]:
        """Return all steps that can be taken."""
        return self.default(state) + self.faults(state)

    def take(self, state: State, step: tuple) -> State:
        """Return the state after a step."""
        successor = self._successor(self.memo, state, self.journaled)
        getattr(successor, step[0])(*step[1:])
        if state.ghosts:
            successor.observe()
        return successor.state()

    def postpone(self, state: State, pending: Pending) -> State:
        """Return the state in which a message comes after all others."""
        return self.take(state, ("postpone", pending))

    def in_words(self, state: State, step: tuple) -> ScheduleStep:
        """Return a step in words."""
        kind, *about = step
        words = self.memo.words
        if kind in ("deliver", "duplicate", "drop"):
            _, src, dst, number = about[0]
            return ScheduleStep(kind, src, dst, words(number))
        if kind == "call":
            attempts, results = state.clients[about[0]]
            call = self.memo.call(about[0], attempts.ended, results)
            asked = words(call, describe_call)
            return ScheduleStep(kind, about[0], attempts.node, asked)
        if kind == "timer":
            return ScheduleStep(kind, about[0], 0, words(about[1][1]))
        if kind == "synced":
            return ScheduleStep(kind, about[0], 0, words(state.syncs[about[0]][0][0]))
        if kind == "split":
            return ScheduleStep(kind, 0, 0, describe_sides(about[0]))
        if kind == "clock":
            return ScheduleStep(kind, about[0], 0, repr(about[1]))
        return ScheduleStep(kind, *about)

    def find(self, state: State, step: ScheduleStep) -> tuple | None:
        """Return the step with these words, or None if it cannot happen now.

        It may be one beyond the limits of the search.
        """
        for each in self._candidates(state, step):
            # Words that a step is made of need not be spelled as it would spell them.
            if step.kind in ("split", "clock") or self.in_words(state, each) == step:
                return each
        return None

    def find_similar(self, state: State, step: ScheduleStep) -> tuple | None:
        """Return a step of the same kind, node and sort of message, or None."""
        if step.kind in ("deliver", "duplicate", "drop", "call", "timer"):
            sort = step.words.partition(" ")[0]
            for each in self._candidates(state, step):
                if self.in_words(state, each).words.partition(" ")[0] == sort:
                    return each
        return None

    def _candidates(self, state, step):
        """Return the steps that can be taken and may be the one with these words."""
        kind, a, b, words = step
        nodes, clients = len(state.nodes), state.clients
        if kind in ("deliver", "duplicate", "drop"):
            return [(kind, p) for p in state.pending if (p.src, p.dst) == (a, b)]
        if kind == "call":
            fits = a < len(clients) and self._asks(state, a)
        elif kind == "time_out":
            fits = a < len(clients) and clients[a][0].waits
        elif kind == "heal":
            fits = state.sides is not None
        elif kind == "split":
            way = _sides_in(words, nodes)
            return [("split", way)] if way and state.sides is None else []
        elif max(a, b) >= nodes:
            fits = False
        elif kind in ("cut", "mend"):
            fits = a != b and ((a, b) in state.severed) == (kind == "mend")
            return [(kind, a, b)] if fits else []
        elif kind == "timer":
            return [("timer", a, timer) for timer in state.timers[a]]
        elif kind == "clock":
            reading_s = _seconds_in(words)
            return [] if reading_s is None else [("clock", a, reading_s)]
        elif kind == "synced":
            fits = state.syncs[a]
        else:
            fits = bool(state.nodes[a]) == (kind != "restart")
        return [(kind, a)[: 1 + (kind != "heal")]] if fits else []

    def _asks(self, state, number):
        """Return True if a client that does not wait has something to ask."""
        attempts, results = state.clients[number]
        more = attempts.tries or self.memo.call(number, attempts.ended, results)
        return not attempts.waits and bool(more)


def _troubled(state):
    faults = state.crashes, state.power_losses, state.disk_losses, state.drops
    return any(faults) or state.splits or state.cuts


def _seconds_in(words):
    try:
        return float(words)
    except ValueError:
        return None


def _sides_in(words: str, nodes: int) -> tuple | None:
    """Return the side of each node from words such as "0 | 1 2"; None for others."""
    sides = [side.split() for side in words.split("|")]
    side_of = {node: k for k, side in enumerate(sides) for node in side}
    numbers = list(map(str, range(nodes)))
    if sum(map(len, sides)) != nodes or set(side_of) != set(numbers):
        return None
    return tuple(side_of[number] for number in numbers)


def describe_sides(side_of: tuple) -> str:
    """Return the sides of a partition in words, such as "0 | 1 2"."""
    sides = {}
    for node, side in enumerate(side_of):
        sides.setdefault(side, []).append(str(node))
    return " | ".join(" ".join(side) for side in sides.values())
