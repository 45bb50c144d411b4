"""`fuzz`: random runs on the virtual clock with random faults, until one is wrong.

    run, run, run ─▶ a wrong one ─▶ the same once more ─▶ its steps ─▶ shrink ─▶ replay
    without a trace

Where bounded search stops after a few deviations, a random run makes hundreds: so it
finds what takes several terms, crashes and late messages. A run is far from minimal;
its schedule is shrunk as that of a search.
"""

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import NamedTuple

from distlab.calls.progress import Progress
from distlab.errors import NodeFailed, NotDeterministic
from distlab.faults import ClockJump, Crash, Cut, Pause, Split
from distlab.network.client import (
    Client,
    check_clients,
    check_seconds,
)
from distlab.network.copies import SplitMix64, thaw
from distlab.network.delivery import Delivery, check_delivery, check_range
from distlab.network.describe import describe, describe_call
from distlab.network.node_diagnosis import MOST_TO_ITSELF, talks_to_itself
from distlab.network.node_host import check_nodes
from distlab.network.schedules.counterexample import Counterexample, Finder, NotFound
from distlab.network.schedules.monitors import violation
from distlab.network.schedules.properties import Property, UntracedOutcome
from distlab.network.schedules.schedule import EventSchedule, ScheduleStep
from distlab.network.schedules.search import check_counts
from distlab.network.schedules.state import NodeMemo
from distlab.network.schedules.transitions import FaultLimits
from distlab.network.virtual_clock import SimulatedRun

__all__ = ["fuzz"]

_MOST_EVENTS = 200_000  # of one run
_RUNS_MORE, _MOST_FOUND = 20, 4  # for a shorter schedule than the first
_CRASHES = {"crashes": "", "power_losses": "unsynced", "disk_losses": "disk"}
_FAULTS = (*_CRASHES, "splits", "cuts", "pauses", "clock_jumps")
_CRASH_STEPS = {"": "crash", "unsynced": "power_loss", "disk": "disk_loss"}


class Fuzzed(NamedTuple):
    """The extent of fuzzing: runs, their events and faults, and the duration.

    judged: how many runs `check` has judged; the others were not settled at their end.
    """

    runs: int = 0
    events: int = 0
    faults: int = 0
    seconds: float = 0.0
    judged: int = 0

    def __str__(self):
        counted = f"{self.runs:,} runs, {self.events:,} events, {self.faults:,} faults"
        few = f"; only {self.judged:,} were settled" if self.judged < self.runs else ""
        return f"{counted} in {self.seconds:.1f} s{few}"


def fuzz(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client] = (),
    check: Callable | None = None,
    *,
    invariant: Callable | None = None,
    monitors: Iterable = (),
    loss: float = 0.0,
    duplicates: float = 0.0,
    delivery: Delivery = Delivery(),  # noqa: B008, it cannot change
    timeout_s: tuple[float, float] | None = (0.02, 0.04),
    until_s: float = 1.0,
    settled: bool = False,
    seed: int = 0,
    runs: int | None = None,
    within_s: float = 10.0,
    **faults: int,
) -> Counterexample | NotFound:
    """Run a protocol at random on the virtual clock, until a run breaks it.

    check, invariant, monitors, settled: as in a search. `check` judges each run at its
        end, and what comes after what; the seconds of a run are not those of its
        schedule.
    faults: crashes, power_losses, disk_losses, splits, cuts, pauses, clock_jumps: how
        often each may happen in one run. loss, duplicates: the shares of messages, at
        most, that are dropped or arrive twice.
    timeout_s: clients' time-outs are between these; None for their own.
    until_s: the virtual time at which a run ends, if its clients are not done before.
    runs, within_s: it ends after so many runs, or so many seconds.

    Returns: a `Counterexample` with the shrunk schedule of the wrong run, as a search
        does, or a `NotFound`. The same seed gives the same runs.
    Raises: InvalidArgument; NotDeterministic, if the nodes behave otherwise on replay.
    """
    check_nodes(nodes)
    clients = check_clients(clients, nodes, repeatable=True)
    check_delivery(delivery)
    check_delivery(replace(delivery, loss=loss, duplicate=duplicates))
    check_seconds("within_s", within_s)
    check_seconds("until_s", until_s)
    wanted = Property(check, invariant, monitors)
    check_counts(faults, _FAULTS)
    check_counts({} if runs is None else {"runs": runs})
    shares = (delivery, loss, duplicates)
    plan = _RunPlan(nodes, clients, faults, shares, timeout_s, until_s, seed)
    one = _Fuzzing((make, nodes, clients), wanted, plan, settled)
    return one.run(count() if runs is None else range(runs), within_s)


class _RunPlan:
    """The plan of each run: its faults, delivery, and clients' time-outs, by chance."""

    def __init__(self, nodes, clients, most, shares, timeout_s, until_s, seed):
        self.nodes, self.clients, self.shares = nodes, clients, shares
        self.most = {kind: most.get(kind, 0) for kind in _FAULTS}
        self.timeout_s, self.until_s, self.seed = timeout_s, until_s, seed
        if timeout_s is not None:
            check_range("timeout_s", timeout_s)

    def of_run(self, number: int) -> tuple[list[Client], list, Delivery, str]:
        """Return (clients, faults, delivery, seed) of a run."""
        seed = f"{self.seed} {number}"
        chance = random.Random(f"{seed} plan")
        delivery, loss, duplicates = self.shares
        delivery = replace(
            delivery,
            loss=delivery.loss or loss * chance.random(),
            duplicate=delivery.duplicate or duplicates * chance.random(),
        )
        span_s = self.until_s * chance.uniform(0.05, 1.0)
        clients = [self._client(each, chance, span_s) for each in self.clients]
        return clients, self._faults(chance, span_s), delivery, seed

    def _client(self, client, chance, span_s):
        """Return a client that makes its calls at some time among the faults."""
        own_s = client.timeout_s
        return replace(
            client,
            start_s=client.start_s + chance.uniform(0, span_s / 2),
            pause_s=client.pause_s + chance.expovariate(10 / span_s),
            timeout_s=chance.uniform(*self.timeout_s) if self.timeout_s else own_s,
        )

    def _faults(self, chance, span_s):
        """Return faults in a part of the run, which may be short and full of them."""
        faults, busy = [], []
        for kind, most in self.most.items():
            if self.nodes == 1 and kind in ("splits", "cuts"):
                continue
            for _ in range(chance.randint(0, most)):
                at_s = chance.uniform(0, span_s)
                until_s = at_s + span_s * 10 ** chance.uniform(-2.5, -0.3)
                who, fault = self._fault(kind, chance, at_s, until_s)
                over = all(
                    who != other or until_s < begin or end < at_s
                    for other, begin, end in busy
                )
                if over:
                    busy.append((who, at_s, until_s))
                    faults.append(fault)
        return faults

    def _fault(self, kind, chance, at_s, until_s):
        """Return (what has one such fault at a time, a fault)."""
        node, everyone = chance.randrange(self.nodes), range(self.nodes)
        if kind == "splits":
            side = set(chance.sample(everyone, chance.randint(1, self.nodes - 1)))
            rest = [other for other in everyone if other not in side]
            return kind, Split(at_s, sorted(side), rest, until_s=until_s)
        if kind == "cuts":
            src, dst = chance.sample(everyone, 2)
            return (src, dst), Cut(at_s, src, dst, until_s)
        if kind == "pauses":
            return node, Pause(node, at_s, until_s)
        if kind == "clock_jumps":
            by_s = chance.choice([-1, 1]) * 10 ** chance.uniform(-3, 3)
            return at_s, ClockJump(node, at_s, by_s)
        return node, Crash(node, at_s, until_s, _CRASHES[kind])


class _Wrong(Exception):
    """A run has turned out to be wrong."""


class _FuzzRun(SimulatedRun):
    """One run, without a trace, that is judged after each event.

    Its events are the steps of a schedule: a node's messages to itself arrive at once,
    and a client does not call a node that pauses.
    """

    _generator, traced = SplitMix64, False

    def __init__(self, what, wanted, plan, ghosts, settled):
        make, nodes, _ = what
        clients, self.faults, delivery, seed = plan
        super().__init__(make, nodes, clients, self.faults, delivery, seed)
        self.wanted, self.settled, self.why, self.judged = wanted, settled, "", True
        self.monitors = [thaw(ghost) for ghost in ghosts]
        self._to_itself, self._most_events = [], _MOST_EVENTS
        self._objects = [None] * nodes
        ends = [fault.until_s for fault in self.faults if hasattr(fault, "until_s")]
        self._troubled_until = max(ends, default=0.0)

    def find(self, until_s: float) -> str:
        """Run; return what is wrong, "" if nothing is."""
        try:
            self.run(until_s)
            self._judge_the_end()
        except _Wrong:
            pass
        except NodeFailed as error:
            if self.taken > self._most_events:
                raise
            self.why = str(error)
        return self.why

    def _judge_the_end(self):
        self.judged = not self.settled or self._is_settled()
        if self.wanted.check and self.judged:
            saved = [disk.values for disk in self.disks]
            about = self.history(), self._objects, saved, self.now
            self.why = self.wanted.of_outcome(UntracedOutcome(*about))

    def _is_settled(self):
        kinds = {what for _, _, what, _ in self._agenda}
        coming = {self._arrive, self._end_sync, self._heal, self._mend, self._restart}
        return all(self.hosts) and not kinds & coming

    def _going_on(self):
        if self.now < self._troubled_until or not self.settled:
            return self.now < self._troubled_until or super()._going_on()
        return self.active or not self._is_settled()

    def _react(self, host, method, *args):
        super()._react(host, method, *args)
        heard = 0
        while self._to_itself:
            super()._react(host, host.message, host.me, self._to_itself.pop(0))
            if (heard := heard + 1) > MOST_TO_ITSELF:
                raise talks_to_itself(host.me, host.kind)
        self._objects[host.me] = host.node
        self._observe(host.me)

    def _observe(self, node):
        for monitor in self.monitors:
            name = type(monitor).__name__
            self._stop_if(violation(monitor.observe, self._objects, node, name=name))
        if self.wanted.invariant:
            self._stop_if(self.wanted.of_nodes(self._objects))

    def _stop_if(self, why):
        if why:
            self.why = why
            raise _Wrong

    def send(self, src, to, message):
        if src == to:
            self._to_itself.append(message)
        else:
            super().send(src, to, message)

    def _ask(self, number, attempt):
        node = self.sessions[number].attempts.node
        if not self._postponed(node, self._ask, number, attempt):
            super()._ask(number, attempt)

    def _crash(self, node, loses):
        super()._crash(node, loses)
        self._objects[node] = None
        self._observe(node)


class _RecordedRun(_FuzzRun):
    """The same run once more, which records its steps."""

    def __init__(self, *how):
        super().__init__(*how)
        self.steps, self._readings = [], {}

    def _step(self, kind, a=0, b=0, words=""):
        self.steps.append(ScheduleStep(kind, a, b, words))

    def _acts(self, node, kind, a=0, b=0, words=""):
        """Record a step in which a node reads its clock."""
        reading_s = self.reading(node)
        if reading_s != self._readings.get(node, 0.0):
            self._readings[node] = reading_s
            self._step("clock", node, 0, repr(reading_s))
        self._step(kind, a, b, words)

    def send(self, src, to, message):
        before = len(self._agenda)
        super().send(src, to, message)
        if src != to and len(self._agenda) == before:
            self._step("drop", src, to, describe(message))

    def _arrive(self, src, to, message, number, words, for_client, copies):
        kind = "duplicate" if copies else "deliver"
        self._acts(to, kind, src, to, describe(message))
        super()._arrive(src, to, message, number, words, for_client, copies)

    def _fire(self, node, name):
        self._acts(node, "timer", node, 0, describe(name))
        super()._fire(node, name)

    def _synced(self, node, token, written):
        self._acts(node, "synced", node, 0, describe(token))
        super()._synced(node, token, written)

    def asked(self, number, node, call, heard):
        self._acts(node, "call", number, node, describe_call(call))

    def _end(self, number, outcome, result=None, to=None):
        if outcome == "unknown":
            self._step("time_out", number)
        super()._end(number, outcome, result, to)

    def _crash(self, node, loses):
        self._step(_CRASH_STEPS[loses], node)
        super()._crash(node, loses)

    def _restart(self, node):
        self._acts(node, "restart", node)
        super()._restart(node)

    def _split(self, sides):
        self._step("split", words=sides)
        super()._split(sides)

    def _heal(self, sides):
        self._step("heal")
        super()._heal(sides)

    def _cut(self, src, dst):
        self._step("cut", src, dst)
        super()._cut(src, dst)

    def _mend(self, src, dst):
        self._step("mend", src, dst)
        super()._mend(src, dst)


class _Fuzzing:
    """Runs, one after another, until one is wrong; that one is then made a schedule."""

    def __init__(self, what, wanted, plan, settled):
        self.what, self.wanted, self.plan, self.settled = what, wanted, plan, settled
        memo = NodeMemo(*what, plan.seed, wanted.monitors)
        self.ghosts = [memo.values.frozen(number) for number in memo.ghosts]

    def run(self, numbers: Iterable[int], within_s: float) -> Counterexample | NotFound:
        """Run the runs with these numbers, until one is wrong."""
        begun, so_far = time.monotonic(), Fuzzed()
        with Progress() as progress:
            for number in numbers:
                if so_far.seconds > within_s:
                    break
                progress.show(partial("fuzzing: {} of {:g} s".format, so_far, within_s))
                run = self._new(_FuzzRun, number)
                why = run.find(self.plan.until_s)
                so_far = Fuzzed(
                    so_far.runs + 1,
                    so_far.events + run.taken,
                    so_far.faults + len(run.faults),
                    time.monotonic() - begun,
                    so_far.judged + run.judged,
                )
                if why:
                    progress.show(partial("shrinking run {:,}".format, number))
                    return self._shortest(number, so_far)
        return NotFound(so_far)

    def _shortest(self, number, fuzzed):
        """Return the counterexample of this run, or a shorter one of the next runs."""
        found = [self._found(number, fuzzed)]
        for other in range(number + 1, number + _RUNS_MORE):
            run = self._new(_FuzzRun, other)
            if len(found) < _MOST_FOUND and run.find(self.plan.until_s):
                found.append(self._found(other, fuzzed))
        return min(found, key=lambda one: len(one.schedule))

    def _new(self, kind, number):
        plan = self.plan.of_run(number)
        return kind(self.what, self.wanted, plan, self.ghosts, self.settled)

    def _found(self, number, fuzzed):
        """Return the counterexample of a run that is wrong."""
        run = self._new(_RecordedRun, number)
        why = run.find(self.plan.until_s)
        limits = FaultLimits(power_losses=1)
        finder = Finder(self.what, self.wanted, limits, run.seed, self.settled)
        with finder.memo.watchdog:
            finder.begin(EventSchedule(()))
            steps = finder.still_wrong(run.steps)
            if steps is None:
                raise _no_schedule(number, why)
            return finder.found(finder.shrunk(steps), fuzzed)


def _no_schedule(number, why):
    """Return the error for a wrong run whose steps are right when they are replayed."""
    return NotDeterministic(
        f"run {number:,} was wrong, and its schedule is not: {why}\n\n"
        "    Is a node not deterministic, by a set or a list of the class? Does the\n"
        "    check judge seconds? A schedule has an order of events, and no time.",
        node=0,
        at_s=0.0,
        first=why,
        second="",
    )
