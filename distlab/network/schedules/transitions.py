"""Transitions: the possible steps of a `State`, and the state after each.

The steps that happen when nothing goes wrong have a default order: every message is
delivered, in the order of the rounds in which they were sent, then the next client
makes its call. A postponed message comes when no other step is left, then timers run
out, and last a client times out. All other steps, such as a crash, are faults, and have
limits.
"""

from collections.abc import Callable
from itertools import combinations, permutations

from distlab.errors import NodeFailed
from distlab.network.client import ClientProgress
from distlab.network.describe import describe_call
from distlab.network.schedules.schedule import LIMITED, FaultLimits, ScheduleStep
from distlab.network.schedules.state import NodeMemo, Pending, State
from distlab.network.schedules.successor import POSTPONED, Successor

__all__ = ["Transitions", "all_splits", "describe_sides"]

_HOUR = 3600.0
_FAULTS = [kind for kind in LIMITED if kind != "timer"]


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

    def possible(self, state: State, kind: str) -> list[tuple]:
        """Return the steps of a kind that can happen, also those beyond the limits."""
        match kind:
            case "deliver" | "drop" | "duplicate":
                return [(kind, pending) for pending in state.pending]
            case "synced":
                return [(kind, n) for n, syncs in enumerate(state.syncs) if syncs]
            case "restart":
                return [(kind, n) for n, memory in enumerate(state.nodes) if not memory]
            case "call":
                numbers = range(len(state.clients))
                asking = [n for n in numbers if self._asks(state, n)]
                asking.sort(key=lambda n: state.clients[n][0].ended)
                return [(kind, n) for n in asking]
            case "time_out":
                return [(kind, n) for n, (a, _) in enumerate(state.clients) if a.waits]
            case "timer":
                timers = [(t, n) for n, set_ in enumerate(state.timers) for t in set_]
                return [(kind, node, timer) for timer, node in sorted(timers)]
            case "crash" | "power_loss" | "disk_loss":
                return [(kind, n) for n, memory in enumerate(state.nodes) if memory]
            case "split" if state.sides is None:
                return [(kind, way) for way in self.limits.ways]
            case "heal" if state.sides is not None:
                return [(kind,)]
            case "cut":
                links = permutations(range(len(state.nodes)), 2)
                return [(kind, *link) for link in links if link not in state.severed]
            case "mend":
                return [(kind, *link) for link in state.severed]
            case "clock":
                clocks, by = enumerate(state.clocks), (_HOUR, -_HOUR)
                return [(kind, n, now + by_s) for n, now in clocks for by_s in by]
        return []

    def default(self, state: State) -> list[tuple]:
        """Return the steps without a fault, in the default order; none at the end."""
        pending = self.possible(state, "deliver")
        soon = [step for step in pending if step[1].round < POSTPONED]
        steps = soon + self.possible(state, "synced") + self.possible(state, "restart")
        steps += self.possible(state, "call") + pending[len(soon) :]
        waiting = self.possible(state, "time_out")
        if waiting or not state.clients:
            steps += self._timers(state)
        if state.sides is not None or state.severed:
            steps += self.possible(state, "heal") + self.possible(state, "mend")
        used = state.used
        lossy = any((used.crashes, used.power_losses, used.disk_losses, used.drops))
        if waiting and (lossy or used.splits or used.cuts or not steps):
            steps += [step for step in waiting if self._asks_more(state, step[1])]
        return steps

    def _timers(self, state):
        more = state.used.timers < self.limits.timers
        return self.possible(state, "timer") if more else []

    def _asks_more(self, state, number):
        attempts, results = state.clients[number]
        if attempts.tries <= self.memo.clients[number].retries:
            return True
        results = self.memo.with_result(number, results, 0)
        return self.memo.call(number, attempts.ended + 1, results)

    def faults(self, state: State) -> list[tuple]:
        """Return the steps that are faults, and timers that run out early."""
        steps = []
        if state.clients and not any(each.waits for each, _ in state.clients):
            steps += self._timers(state)
        for kind, count, most in zip(_FAULTS, state.used, self.limits, strict=False):
            if count < most:
                steps += self.possible(state, kind)
        return steps

    def all(self, state: State) -> list[tuple]:
        """Return all steps that can be taken."""
        return self.default(state) + self.faults(state)

    def take(self, state: State, step: tuple) -> State:
        """Return the state after a step."""
        successor = self._successor(self.memo, state, self.journaled)
        kind, *about = step
        getattr(successor, kind)(*about)
        if counted := LIMITED.get(kind):
            once_more = {counted: getattr(state.used, counted) + 1}
            successor.changed["used"] = state.used._replace(**once_more)
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
        kind, node, _, words = step
        if kind == "split":
            way = _sides_in(words, len(state.nodes))
            return (kind, way) if way and state.sides is None else None
        if kind == "clock":
            reading_s, known = _seconds_in(words), node < len(state.nodes)
            return (kind, node, reading_s) if known and reading_s is not None else None
        for each in self.possible(state, kind):
            if self.in_words(state, each) == step:
                return each
        return None

    def find_similar(
        self, state: State, step: ScheduleStep, only: bool = False
    ) -> tuple | None:
        """Return a step of the same kind and nodes, whose words begin alike, or None.

        Its message may hold other fields; a client may ask another node. only: None,
        too, if there are several.
        """
        if step.kind not in ("deliver", "duplicate", "drop", "call", "timer"):
            return None
        alike = []
        for each in self.possible(state, step.kind):
            kind, a, b, words = self.in_words(state, each)
            same_nodes = a == step.a and (b == step.b or kind == "call")
            if same_nodes and words.split(" ")[0] == step.words.split(" ")[0]:
                alike.append(each)
        return alike[0] if len(alike) == 1 or (alike and not only) else None

    def _asks(self, state, number):
        """Return True if a client that does not wait has something to ask."""
        attempts, results = state.clients[number]
        more = attempts.tries or self.memo.call(number, attempts.ended, results)
        return not attempts.waits and bool(more)


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
