"""`search`: exploration for an order of events that breaks a protocol, and shrinking.

explore ─▶ shrink ─▶ replay on real nodes ─▶ `Counterexample`, or `NotFound`
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from distlab.calls.progress import Progress
from distlab.errors import InvalidArgument
from distlab.network.client import (
    Client,
    check_clients,
    check_seconds,
)
from distlab.network.node_host import check_nodes
from distlab.network.schedules.counterexample import Counterexample, Finder, NotFound
from distlab.network.schedules.exploration import Explorer
from distlab.network.schedules.properties import Property
from distlab.network.schedules.schedule import EventSchedule
from distlab.network.schedules.shrinking import shortest
from distlab.network.schedules.transitions import FaultLimits, all_splits

__all__ = ["check_counts", "search"]

_MOST_NODES = 100
_FAULTS = FaultLimits._fields[:8]
_SHORTEST_S = 2.0  # time limit of the search for a schedule below the shrunk one


class Explored(NamedTuple):
    """The extent of a search.

    walks: random schedules. schedules: all that were run to their end. steps: taken in
    all. states: distinct states visited. deviations: all schedules with up to so many
    steps out of the default order were explored; -1 if not even the default one.
    complete: whether there are no others. seconds: the duration.
    """

    walks: int
    schedules: int
    steps: int
    states: int
    deviations: int
    complete: bool
    limits: FaultLimits
    seconds: float

    def __str__(self):
        described = f"{self.schedules:,} schedules, {self.steps:,} steps, "
        described += f"{self.states:,} states in {self.seconds:.1f} s"
        if self.complete:
            reach = "all schedules there are within the limits"
        elif self.deviations >= 0:
            reach = f"{self.walks:,} at random and all with up to {self.deviations} "
            reach += "steps out of order"
        else:
            reach = f"{self.walks:,} at random"
        limits = zip(_FAULTS, self.limits, strict=False)
        faults = ", ".join(f"{name}={count}" for name, count in limits if count)
        return f"{described}: {reach}; {faults or 'no faults'} in each"


def search(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client] = (),
    check: Callable | None = None,
    *,
    invariant: Callable | None = None,
    monitors: Iterable = (),
    start: EventSchedule | Iterable[str] = (),
    timers: int = 8,
    steps: int = 80,
    settled: bool = False,
    seed: int = 0,
    within_s: float = 10.0,
    **faults: int | Sequence,
) -> Counterexample | NotFound:
    """Search for a schedule that breaks a protocol; return the shortest one found.

    There is no time in a schedule: any message under way may be next, any client may
    make its next call, any timer may run out. The nodes are made by make(me, peers).

    start: a schedule, or its sentences, from the end of which it explores.
    check: called with the outcome of a schedule; it returns a verdict with `violated`,
        or True or False, or asserts. invariant: the same, called with the list of the
        nodes' objects after every step, None for a dead one. monitors: subclasses of
        `Monitor`, which remember.
    faults: crashes, power_losses (of what no `Sync` covers), disk_losses, drops,
        duplicates, splits, cuts (of one direction of a link), clock_jumps (by an hour;
        else clocks stand still): how often these may happen in one schedule. splits may
        also list the ways to split, once in all: [([0], [1, 2])].
    timers: how often timers may run out. steps: how long a schedule may be.
    settled: whether `check` judges only outcomes in which no message is under way, no
        node dead and the network whole, as is right for what must be true in the end.

    Returns: a `Counterexample`, with `schedule`, `why` and `replay()`; or a `NotFound`,
    which is false in an `if`, with the extent of the search.
    Raises: InvalidArgument; NotDeterministic, if the nodes behave otherwise on replay.
    """
    check_nodes(nodes, _MOST_NODES)
    clients = check_clients(clients, nodes, repeatable=True)
    check_seconds("within_s", within_s)
    wanted = Property(check, invariant, monitors)
    ways, splits = _splits(faults.get("splits", 0), nodes)
    counts = faults | {"splits": splits}
    check_counts(counts, _FAULTS)
    check_counts({"timers": timers, "steps": steps})
    limits = FaultLimits(**counts, timers=timers, steps=steps, ways=ways)
    one = _ScheduleSearch((make, nodes, clients), wanted, limits, seed, settled)
    return one.run(EventSchedule(start), within_s)


def check_counts(counts: dict[str, Any], known: Sequence[str] = ()) -> None:
    """Check that every count is a number from 0 on, of a fault that is known, if given.

    Raises: InvalidArgument.
    """
    for name, count in counts.items():
        if known and name not in known:
            raise InvalidArgument(
                f"{name} is no fault here. These may happen: {', '.join(known)}."
            )
        whole = isinstance(count, int) and not isinstance(count, bool)
        if not whole or count < 0:
            raise InvalidArgument(f"{name} is a number from 0 on, and got {count!r}.")


def _splits(splits, nodes):
    """Return (ways to split, each as every node's side; the limit of splits)."""
    if not isinstance(splits, Sequence) or isinstance(splits, str):
        some = isinstance(splits, int) and splits > 0
        return (all_splits(nodes) if some else ()), splits
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


class _ScheduleSearch(Finder):
    """One search: explore, shrink, and replay the counterexample on real nodes."""

    def run(self, start: EventSchedule, within_s: float) -> Counterexample | NotFound:
        """Search from the end of the schedule `start` on."""
        begun = time.monotonic()
        with self.memo.watchdog, Progress() as progress:
            self.begin(start)
            tell = self._teller(progress, begun, within_s)
            until = begun + within_s
            explorer = Explorer(self.transitions, self.wrong, until, tell)
            self._verify_the_default_order()
            path = explorer.search(self.first, self.seed, begun)
            explored = Explored(
                explorer.walks,
                explorer.runs,
                explorer.steps,
                len(explorer.seen),
                explorer.deviations,
                explorer.complete,
                self.transitions.limits,
                time.monotonic() - begun,
            )
            if path is None:
                return NotFound(explored)
            steps = self._shortest(self.shrunk(self._in_words(path)), until)
            return self.found(steps, explored)

    def _teller(self, progress, begun, within_s):
        def tell(explorer):
            seconds = f"{time.monotonic() - begun:.0f} of {within_s:g} s"
            more = f"{explorer.runs:,} schedules, {len(explorer.seen):,} states"
            depth = f", up to {explorer.deviations + 1} steps out of order"
            return f"searching, {seconds}: {more}{depth}"

        return lambda explorer: progress.show(lambda: tell(explorer))

    def _in_words(self, path):
        state, steps = self.first, []
        for step in path:
            steps.append(self.transitions.in_words(state, step))
            found = self.transitions.find(state, steps[-1])
            state = self.transitions.take(state, found)
        return steps

    def _shortest(self, steps, until):
        """Return the shortest steps that are found in time, at most these."""
        until = min(until, time.monotonic() + _SHORTEST_S)
        most = len(steps)
        fewer = shortest(self.transitions, self.first, self.wrong, most, until)
        return self.shrunk(fewer) if fewer else steps

    def _verify_the_default_order(self):
        """Replay the default order on real nodes, and check that they do the same."""
        state, steps = self.first, []
        while len(steps) < self.transitions.limits.steps and not state.failed:
            default = self.transitions.default(state)
            if not default:
                break
            steps.append(self.transitions.in_words(state, default[0]))
            state = self.transitions.take(state, default[0])
        self.verified(steps, state)
