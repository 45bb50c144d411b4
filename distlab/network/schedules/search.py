"""`search`: look for the order of events that breaks a protocol, and make it short."""

import time
from collections.abc import Callable, Iterable, Sequence

from distlab.calls.progress import Progress
from distlab.errors import InvalidArgument
from distlab.network.arguments import (
    check_again,
    check_clients,
    check_nodes,
    check_seconds,
)
from distlab.network.client import Client
from distlab.network.schedules.explore import Explorer
from distlab.network.schedules.found import Explored, Found, NotFound
from distlab.network.schedules.judge import Judge
from distlab.network.schedules.moves import Limits, Moves, all_ways
from distlab.network.schedules.replay import checked_replay
from distlab.network.schedules.schedule import Schedule
from distlab.network.schedules.shrink import played, shortened_steps, shorter_way
from distlab.network.schedules.sketch import Sketch, nodes_of
from distlab.network.schedules.states import Lives

__all__ = ["search"]

_MOST_NODES = 100


def search(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client] = (),
    check: Callable | None = None,
    *,
    invariant: Callable | None = None,
    goal: Callable | None = None,
    crashes: int = 0,
    drops: int = 0,
    duplicates: int = 0,
    splits: int | Sequence = 0,
    timers: int = 8,
    steps: int = 80,
    settled: bool = False,
    seed: int = 0,
    within_s: float = 10.0,
) -> Found | NotFound:
    """Look for a schedule that breaks a protocol, and return the shortest it can find.

    There is no time in a schedule: any message under way may be next, any client may
    make its next call, any timer may run out. The nodes are made by make(me, peers).

    check: called with the outcome of a schedule; it returns a verdict with `violated`,
        or True or False, or asserts. invariant: the same, called with the list of the
        nodes' objects after every step, None for a dead one. goal: called with an
        outcome after every step; what is looked for is one for which it is true.
    crashes, drops, duplicates, splits: how often these may happen in one schedule.
        splits may also list the ways in which the network may split, once in all:
        [([0], [1, 2])].
    timers: how often timers may run out. steps: how long a schedule may be.
    settled: whether `check` judges only outcomes in which nothing is under way, nobody
        dead and the network whole, as is right for what must be true in the end.

    Returns: what was found, with `schedule`, `why` and `replay()`; or, false in an
    `if`, what was explored without finding anything.
    Raises: InvalidArgument; NotDeterministic, if the nodes do not do the same again.
    """
    check_nodes(nodes, _MOST_NODES)
    clients = check_clients(clients, nodes)
    check_again(clients)
    check_seconds("within_s", within_s)
    judge = Judge(check, invariant, goal)
    ways, splits = _splits(splits, nodes)
    limits = Limits(crashes, drops, duplicates, splits, ways, timers, steps)
    _check_counts(crashes, drops, duplicates, splits, timers, steps)
    return _Hunt(make, nodes, clients, judge, limits, seed, settled).hunt(within_s)


def _check_counts(*counts):
    names = ("crashes", "drops", "duplicates", "splits", "timers", "steps")
    for name, count in zip(names, counts, strict=True):
        whole = isinstance(count, int) and not isinstance(count, bool)
        if not whole or count < 0:
            raise InvalidArgument(f"{name} is a number from 0 on, and got {count!r}.")


def _splits(splits, nodes):
    """Return the sides of each node for every way to split, and how many splits."""
    if not isinstance(splits, Sequence) or isinstance(splits, str):
        some = isinstance(splits, int) and splits > 0
        return (all_ways(nodes) if some else ()), splits
    ways = []
    for sides in splits:
        try:
            side_of = {node: k for k, side in enumerate(sides) for node in side}
        except TypeError:
            side_of = {}
        if set(side_of) != set(range(nodes)):
            raise InvalidArgument(
                f"splits lists sides that have every node once, such as ([0], "
                f"[1, 2]), and got {sides!r}."
            )
        ways.append(tuple(side_of[node] for node in range(nodes)))
    return tuple(ways), min(1, len(ways))


class _Hunt:
    """One search: explore, shorten, and play what is left on real nodes."""

    def __init__(self, make, nodes, clients, judge, limits, seed, settled):
        self.what = (make, nodes, clients)
        self.judge, self.limits, self.seed, self.settled = judge, limits, seed, settled
        self.lives = Lives(make, nodes, clients, seed)
        self.moves = Moves(self.lives, limits)
        self._of_past, self._of_nodes = {}, {}

    def hunt(self, within_s):
        """Return what was found, or what was explored."""
        begun = time.monotonic()
        with self.lives.watchdog, Progress() as progress:
            self.first = self.moves.first()
            tell = self._teller(progress, begun, within_s)
            until = begun + within_s
            explorer = Explorer(self.moves, self.wrong, until, tell)
            self._check_the_plain_order()
            path = explorer.search(self.first, self.seed, begun)
            found_s = time.monotonic() - begun
            explored = Explored.of(explorer, self.limits, found_s)
            if path is None:
                return NotFound(explored, bool(self.judge.goal))
            return self._found(self._in_words(path), explored, until)

    def _teller(self, progress, begun, within_s):
        def tell(explorer):
            seconds = f"{time.monotonic() - begun:.0f} of {within_s:g} s"
            more = f"{explorer.runs:,} schedules, {len(explorer.seen):,} states"
            depth = f", up to {explorer.surprises + 1} steps out of order"
            return f"searching, {seconds}: {more}{depth}"

        return lambda explorer: progress.show(lambda: tell(explorer))

    def wrong(self, state, end):
        """Return what is wrong with a state, "" if nothing is."""
        judge = self.judge
        if state.failed:
            if judge.goal:
                raise self.moves.failure(state)
            return str(self.moves.failure(state))
        if judge.goal:
            return "the goal is reached" if judge.reached(self._sketch(state)) else ""
        if judge.invariant:
            if state.nodes not in self._of_nodes:
                nodes = nodes_of(self.lives, state)
                self._of_nodes[state.nodes] = judge.of_nodes(nodes)
            if self._of_nodes[state.nodes]:
                return self._of_nodes[state.nodes]
        if judge.check and end and (not self.settled or _is_settled(state)):
            return self._checked(state)
        return ""

    def _checked(self, state):
        """Return what the check says; it is asked once if it only saw the history."""
        if state.past in self._of_past:
            return self._of_past[state.past]
        sketch = self._sketch(state)
        why = self.judge.of_outcome(sketch)
        if not sketch.looked:
            self._of_past[state.past] = why
        return why

    def _sketch(self, state):
        return Sketch(self.lives, state, self._no_trace)

    def _no_trace(self):
        raise InvalidArgument(
            "an outcome of a search has no trace until it is found; judge its history, "
            "its nodes or what they have saved."
        )

    def _in_words(self, path):
        state, steps = self.first, []
        for step in path:
            steps.append(self.moves.told(state, step))
            state = self.moves.take(state, self.moves.find(state, steps[-1]))
        return steps

    def _still(self, steps):
        taken, state = played(self.moves, self.first, steps)
        return taken if self.wrong(state, True) else None

    def _found(self, steps, explored, until):
        """Shorten what was found, and play it on real nodes."""
        steps = shortened_steps(steps, self._still)
        patience = min(until, time.monotonic() + 2.0)
        wrong = lambda state: self.wrong(state, True)  # noqa: E731
        way = shorter_way(self.moves, self.first, wrong, len(steps), patience)
        steps = shortened_steps(way, self._still) if way else steps
        taken, state = played(self.moves, self.first, steps)
        why = self.wrong(state, True)
        schedule = Schedule(taken)
        outcome = checked_replay(*self.what, schedule, self.seed, self.lives, state)
        return Found(schedule, why, explored, outcome, self.what, self.seed)

    def _check_the_plain_order(self):
        """Play the plain order on real nodes, and see that they do the same there."""
        state, steps = self.first, []
        while len(steps) < self.limits.steps and not state.failed:
            plain = self.moves.plain(state)
            if not plain:
                break
            steps.append(self.moves.told(state, plain[0]))
            state = self.moves.take(state, plain[0])
        checked_replay(*self.what, Schedule(steps), self.seed, self.lives, state)


def _is_settled(state):
    whole = state.sides is None and all(state.nodes)
    return whole and not state.pending
