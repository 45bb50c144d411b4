"""A tuning run on a virtual clock: workers that differ in speed, pause and die.

worker 0   │trial 0│trial 3│trial 0, rung 1      │
worker 1   │trial 1      │trial 4 ✗ dies         detected: trial 4 is put back
worker 2   │trial 2│    pauses    │ reports late
"""

import heapq
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from distlab.errors import InvalidArgument
from distlab.faults import Crash, Pause, check_node_faults
from distlab.tune.tuning_run import TuningAttempt, TuningJob, TuningRun, check_whole

__all__ = ["TuningCluster", "simulate_tuning", "straggling"]


@dataclass(frozen=True)
class TuningCluster:
    """The workers of a simulated tuning run.

    step_s: seconds a step, or a function (worker, trial) -> seconds, see `straggling`.
    faults: `Crash(worker, at_s, until_s)` and `Pause(worker, at_s, until_s)`.
    detect_s: the time without a heartbeat after which a worker is taken for dead.
    save_every: the steps between two checkpoints; None for one at each rung's end.
    """

    workers: int = 4
    step_s: float | Callable[[int, int], float] = 1.0
    faults: Iterable[Crash | Pause] = ()
    detect_s: float = 10.0
    save_every: int | None = None

    def __post_init__(self):
        check_whole(workers=(self.workers, 1))
        if self.save_every is not None:
            check_whole(save_every=(self.save_every, 1))
        if not self.detect_s > 0:
            raise InvalidArgument(f"detect_s={self.detect_s!r}: give seconds above 0.")
        faults = check_node_faults(self.faults, self.workers, (Crash, Pause))
        object.__setattr__(self, "faults", faults)

    def seconds_a_step(self, worker: int, trial: int) -> float:
        """Return the seconds that a worker takes for a step of a trial."""
        found = self.step_s(worker, trial) if callable(self.step_s) else self.step_s
        if not (isinstance(found, int | float) and 0 < found < math.inf):
            at = f" for worker {worker} and trial {trial}" * callable(self.step_s)
            raise InvalidArgument(f"step_s is {found!r}{at}: give seconds above 0.")
        return found


def straggling(step_s: float, deviation: float, seed: int = 0) -> Callable:
    """Return a `step_s` that is longer by a random factor for each worker and trial.

    The factor is 1 + |z|, z normal with this standard deviation, as in Li et al.
    (2020), appendix A.1.
    """

    def step_of(worker, trial):
        draw = random.Random(f"{seed}, {worker}, {trial}")
        return step_s * (1 + abs(draw.gauss(0, deviation)))

    return step_of


def simulate_tuning(
    scheduler: Any,
    curve: Callable[[Any, int], float],
    configurations: Sequence,
    cluster: TuningCluster | None = None,
    *,
    until_s: float = math.inf,
) -> TuningRun:
    """Tune until no worker has a job, or for `until_s` seconds; return the record.

    scheduler: a `TrialScheduler`, or what has its methods `next_job`, `on_report`,
    `on_lost`, `on_saved` and `wanted`; the last three may be missing.
    curve: (configuration, steps) -> loss; trial k has configurations[k].

    Raises: InvalidArgument for a job that cannot be run, which names it.
    """
    simulation = _TuningSimulation(
        scheduler, curve, configurations, cluster or TuningCluster()
    )
    return simulation.run(until_s)


@dataclass
class _TrialUnderWay:
    worker: int
    job: TuningJob
    begun_s: float
    step_s: float


class _TuningSimulation:
    """Events on one clock: checkpoints, reports, deaths, pauses, and their detection.

    running: worker -> its job, also while it pauses. faults: by worker.
    """

    def __init__(self, scheduler, curve, configurations, cluster):
        self.scheduler, self.curve = scheduler, curve
        self.configurations, self.cluster = configurations, cluster
        self.now_s, self.events, self.order = 0.0, [], count()
        self.running, self.faults = {}, defaultdict(list)
        self.attempts, self.deaths, self.reported = [], [], set()
        for fault in sorted(cluster.faults, key=lambda fault: fault.at_s):
            self.faults[fault.node].append(fault)
            act = self._pause if isinstance(fault, Pause) else self._crash
            self._at(fault.at_s, act, fault.node)
            if fault.until_s is not None:
                self._at(fault.until_s, lambda: None)  # a worker is free again

    def run(self, until_s):
        """Return the record of a run up to a time."""
        self._give_out()
        while self.events and self.events[0][0] <= until_s:
            self.now_s, _, act, args = heapq.heappop(self.events)
            act(*args)
            self._give_out()
        self.now_s = max(self.now_s, until_s) if self.running else self.now_s
        for running in [*self.running.values()]:
            self._close(running, "given up")
        return TuningRun(self.attempts, self.cluster.workers, self.deaths)

    def _at(self, at_s, act, *args):
        heapq.heappush(self.events, (at_s, next(self.order), act, args))

    def _tell(self, name, *args):
        """Call a method of the scheduler that it may lack."""
        return getattr(self.scheduler, name, lambda *_: None)(*args)

    def _give_out(self):
        for worker in range(self.cluster.workers):
            if worker in self.running or self._is_down(worker):
                continue
            if (job := self.scheduler.next_job()) is None:
                return
            job = self._checked(job)
            step_s = self.cluster.seconds_a_step(worker, job.trial)
            self.running[worker] = _TrialUnderWay(worker, job, self.now_s, step_s)
            self._plan(self.running[worker], job.start)

    def _is_down(self, worker):
        return any(
            fault.at_s <= self.now_s < (fault.until_s or math.inf)
            for fault in self.faults[worker]
        )

    def _pauses(self, worker):
        return [fault for fault in self.faults[worker] if isinstance(fault, Pause)]

    def _checked(self, job):
        most = len(self.configurations)
        whole = isinstance(job, tuple) and [*map(type, job)] == [int] * 4
        if not (whole and 0 <= job[0] < most and job[1] >= 0 <= job[2] <= job[3]):
            raise InvalidArgument(
                f"next_job returned {job!r}: give None, or (trial, rung, start, stop) "
                f"with a trial from 0 to {most - 1}, a rung from 0 on, and a start "
                "from 0 to stop."
            )
        return TuningJob(*job)

    def _plan(self, running, step):
        """Plan the next checkpoint of a job, or its end."""
        job = running.job
        every = self.cluster.save_every or max(job.stop, 1)
        target = min(job.stop, (step // every + 1) * every)
        work_s = (target - job.start) * running.step_s
        self._at(self._after(running, work_s), self._reach, running, target)

    def _after(self, running, work_s):
        """Return the time at which a worker has worked so long on its job."""
        when_s = running.begun_s + work_s
        for pause in self._pauses(running.worker):
            if running.begun_s < pause.until_s and pause.at_s < when_s:
                when_s += pause.until_s - max(pause.at_s, running.begun_s)
        return when_s

    def _reach(self, running, step):
        """Save a checkpoint, or end a job and report its loss."""
        if self.running.get(running.worker) is not running:
            return
        trial, rung, _, stop = running.job
        if step < stop:
            self._tell("on_saved", trial, step)
            if self._tell("wanted", trial, rung) in (False,):  # or 0
                self._close(running, "given up")
            else:
                self._plan(running, step)
            return
        loss = self._loss(trial, stop)
        outcome = "late" if (trial, rung) in self.reported else "done"
        self.reported.add((trial, rung))
        self._close(running, outcome, loss)
        self.scheduler.on_report(trial, rung, loss)

    def _loss(self, trial, steps):
        found = self.curve(self.configurations[trial], steps)
        try:
            return float(found)
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"curve returned {found!r} for trial {trial} after {steps} steps: give "
                "a number, NaN for a loss that has diverged."
            ) from None

    def _close(self, running, outcome, loss=None):
        """End a job now; a lost one has trained the steps that were complete."""
        del self.running[running.worker]
        trial, rung, start, stop = running.job
        if loss is None:
            stop = start + int(self._worked(running) / running.step_s + 1e-9)
        times = running.begun_s, self.now_s
        attempt = running.worker, trial, rung, start, stop, *times, loss, outcome
        self.attempts.append(TuningAttempt(*attempt))

    def _worked(self, running):
        idle_s = sum(
            max(0.0, min(p.until_s, self.now_s) - max(p.at_s, running.begun_s))
            for p in self._pauses(running.worker)
        )
        return self.now_s - running.begun_s - idle_s

    def _crash(self, worker):
        self.deaths.append((self.now_s, worker))
        if running := self.running.get(worker):
            self._close(running, "lost")
            self._at(self.now_s + self.cluster.detect_s, self._lose, running)

    def _pause(self, worker):
        if running := self.running.get(worker):
            self._at(self.now_s + self.cluster.detect_s, self._suspect, running)

    def _suspect(self, running):
        """Take a worker for dead that is in a pause still."""
        worker = running.worker
        if self.running.get(worker) is running and self._is_down(worker):
            self._lose(running)

    def _lose(self, running):
        self._tell("on_lost", running.job.trial, running.job.rung)
