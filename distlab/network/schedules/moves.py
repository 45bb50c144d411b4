"""From one `State` to the next: which steps there are, and where each leads.

The steps that happen when nothing goes wrong have a plain order: every message arrives,
in the order of the rounds in which they were sent, then the next client makes its call.
A message that was put aside comes when nothing else is left, then timers run out, and
last a client gives up. All else, such as a crash, is a fault, and has its limit.
"""

from itertools import combinations
from typing import NamedTuple

from distlab.errors import NodeFailed
from distlab.network.schedules.draft import ASIDE, Draft
from distlab.network.schedules.schedule import Step
from distlab.network.schedules.states import Lives, Pending, State

__all__ = ["Limits", "Moves", "all_ways"]


class Limits(NamedTuple):
    """How often each fault may happen in one schedule.

    splits: how often the network may split. ways: into which sides, each node's side.
    timers: how many may run out. steps: how long a schedule may be.
    """

    crashes: int
    losses: int
    copies: int
    splits: int
    ways: tuple
    timers: int
    steps: int


def all_ways(nodes: int) -> tuple:
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


class Moves:
    """The steps of one protocol, its clients and the limits of its faults."""

    def __init__(self, lives: Lives, limits: Limits):
        self.lives, self.limits = lives, limits

    def first(self) -> State:
        """Return the state in which all nodes have started.

        Raises: NodeFailed if one has not.
        """
        nodes, clients = self.lives.nodes, len(self.lives.clients)
        empty = ((),) * nodes
        none = (0,) * nodes
        asks = ((0, False, ()),) * clients
        draft = Draft(self.lives, State(none, none, empty, empty, (), asks))
        for node in range(nodes):
            draft.begin(node)
        state = draft.state()
        if state.failed:
            raise self.failure(state)
        return state

    def failure(self, state: State) -> NodeFailed:
        """Return what happened to the node that has failed."""
        return self.lives.failures[state.failed]

    def plain(self, state: State) -> list[tuple]:
        """Return the steps without a fault, in the plain order; none at the end."""
        pending = state.pending
        soon = [p for p in pending if p[0] < ASIDE]
        steps = [("get", p) for p in soon]
        steps += [("restart", n) for n, memory in enumerate(state.nodes) if not memory]
        calls, waiting = self._calls(state)
        steps += calls
        steps += [("get", p) for p in pending[len(soon) :]]
        if waiting or not state.clients:
            steps += self._timers(state)
        if state.sides is not None:
            steps.append(("heal",))
        if waiting and (not steps or state.crashes or state.losses or state.splits):
            steps += [("leave", n) for n in waiting if self._asks_more(state, n)]
        return steps

    def _calls(self, state):
        """Return the steps of calls, and the clients that wait for an answer."""
        calls, waiting = [], []
        for number, (index, waits, results) in enumerate(state.clients):
            if waits:
                waiting.append(number)
            elif self.lives.call(number, index, results):
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
        return self.lives.call(number, index + 1, self.lives.told(number, results, 0))

    def others(self, state: State) -> list[tuple]:
        """Return the steps that are faults, and timers that run out early."""
        limits, steps = self.limits, []
        if state.clients and not any(waits for _, waits, _ in state.clients):
            steps += self._timers(state)
        if state.crashes < limits.crashes:
            alive = [n for n, memory in enumerate(state.nodes) if memory]
            steps += [("crash", node) for node in alive]
        if state.losses < limits.losses:
            steps += [("lose", p) for p in state.pending]
        if state.copies < limits.copies:
            steps += [("copy", p) for p in state.pending]
        if state.splits < limits.splits and state.sides is None:
            steps += [("split", way) for way in limits.ways]
        return steps

    def take(self, state: State, step: tuple) -> State:
        """Return the state after a step."""
        draft = Draft(self.lives, state)
        getattr(draft, step[0])(*step[1:])
        return draft.state()

    def aside(self, state: State, pending: Pending) -> State:
        """Return the state in which a message comes after all others."""
        draft = Draft(self.lives, state)
        draft.aside(pending)
        return draft.state()

    def told(self, state: State, step: tuple) -> Step:
        """Return a step in words."""
        kind, *about = step
        if kind in ("get", "copy", "lose"):
            _, src, dst, number = about[0]
            return Step(kind, src, dst, self.lives.words(number))
        if kind == "call":
            index, _, results = state.clients[about[0]]
            words = self.lives.call_words(self.lives.call(about[0], index, results))
            return Step(kind, about[0], self.lives.clients[about[0]].node, words)
        if kind == "timer":
            return Step(kind, about[0], 0, self.lives.words(about[1][1]))
        if kind == "split":
            return Step(kind, 0, 0, sides_in_words(about[0]))
        return Step(kind, *about)

    def find(self, state: State, step: Step) -> tuple | None:
        """Return the step with these words, or None if it cannot happen now."""
        for each in self.plain(state) + self.others(state):
            if each[0] == step.kind and self.told(state, each) == step:
                return each
        return None


def sides_in_words(side_of: tuple) -> str:
    """Return the sides of a split in words, such as "0 | 1 2"."""
    sides = {}
    for node, side in enumerate(side_of):
        sides.setdefault(side, []).append(str(node))
    return " | ".join(" ".join(side) for side in sides.values())
