"""A simulated MapReduce job: thousands of machines, scheduled as real workers are.

    Machines: duration of an attempt ─────┐
    deaths: times and workers ────────────┼─▶ simulate ─▶ SimulatedJob: attempts, rates
    TaskStates: the next task of a worker ┘

The loop is that of `job` on a virtual clock, with events in place of processes and the
same `TaskStates` class. Two things are as in this package and not as in the paper:
a machine does one task at a time, and reduces begin when the last map is done.

Source: Dean and Ghemawat, "MapReduce" (2004), sections 3.3, 3.6 and 5.
"""

import heapq
from collections.abc import Iterable

from distlab.calls.progress import Progress
from distlab.dataflow.mapreduce.simulated_job import Machines, Ran, SimulatedJob
from distlab.dataflow.mapreduce.task_states import TaskStates
from distlab.errors import InvalidArgument

__all__ = ["simulate"]


def simulate(
    maps: int = 15_000,
    reduces: int = 4_000,
    *,
    machines: Machines | None = None,
    backups: bool = True,
    deaths: Iterable[tuple[float, int]] = (),
    seed: int = 0,
) -> SimulatedJob:
    """Run a job on simulated machines; the same seed gives the same run.

    machines: if None, the paper's.
    deaths: (when, worker); another process takes its place at once, with an empty disk.

    Raises: InvalidArgument for a job or a death that cannot be.
    """
    machines = machines or Machines()
    deaths = sorted(deaths)
    if maps < 0 or reduces < 1 or machines.workers < 1:
        raise InvalidArgument(
            "a job has a reduce task, and a worker to do it; got "
            f"{reduces=}, {maps=}, workers={machines.workers}."
        )
    for when_s, worker in deaths:
        if when_s < 0 or worker not in range(machines.workers):
            raise InvalidArgument(
                f"deaths are (seconds, worker), and got {(when_s, worker)}; of "
                f"{machines.workers} workers the last is {machines.workers - 1}."
            )
    run = _RunningJob(
        machines, TaskStates(maps, reduces, backups=backups), deaths, seed
    )
    run.to_the_end()
    return SimulatedJob(
        machines,
        maps,
        reduces,
        elapsed_s=run.now,
        attempts=run.attempts,
        undone=run.undone,
        deaths=deaths,
    )


class _RunningJob:
    """A job under way.

    now: the virtual time. attempts: those that have ended. undone: (when, map task)
    for each whose output was lost with its worker.
    """

    def __init__(self, machines, schedule, deaths, seed):
        self.now = machines.startup_s
        self.attempts, self.undone = [], []
        self._machines, self._schedule, self._seed = machines, schedule, seed
        self._factors = machines.factors(seed)
        self._idle = list(range(machines.workers))  # a heap
        self._ends = []  # a heap of (when, attempt)
        self._takes_s = {}  # attempt under way -> its duration
        self._deaths = list(reversed(deaths))

    def to_the_end(self):
        """Process the events in order; hand out attempts before each of them."""
        with Progress() as progress:
            while not self._schedule.finished:
                progress.show(lambda: f"simulated: {self.now:.0f} s on the clock")
                self._hand_out()
                self.now = max(self.now, self._next_s())
                while self._ends and self._ends[0][0] <= self.now:
                    self._done(heapq.heappop(self._ends)[1])
                while self._deaths and self._deaths[-1][0] <= self.now:
                    self._lost(self._deaths.pop()[1])
        for attempt in list(self._takes_s):
            self._end(attempt, "given up")

    def _hand_out(self):
        while self._idle:
            attempt = self._schedule.next_for(self._idle[0], self.now)
            if attempt is None:
                return
            worker = heapq.heappop(self._idle)
            takes_s = self._machines.attempt_s(attempt, self._seed)
            takes_s *= self._factors[worker]
            self._takes_s[attempt] = takes_s
            heapq.heappush(self._ends, (self.now + takes_s, attempt))

    def _next_s(self):
        moments = [end_s for end_s, _ in self._ends[:1]]
        moments += [when_s for when_s, _ in self._deaths[-1:]]
        moments += [self.now + self._machines.look_s] if self._idle else []
        return min(moments)

    def _done(self, attempt):
        if attempt in self._takes_s:
            first = self._schedule.done(attempt, self.now)
            self._end(attempt, "done" if first else "too late")
            heapq.heappush(self._idle, attempt.worker)

    def _lost(self, worker):
        again = self._schedule.lost(worker)
        self.undone += [(self.now, task) for task in again]
        for attempt in [a for a in self._takes_s if a.worker == worker]:
            self._end(attempt, "lost")
            heapq.heappush(self._idle, worker)
        if again:
            self._fail_those_that_fetch()

    def _fail_those_that_fetch(self):
        """Fail the running reduces that have not yet fetched all map outputs."""
        for attempt, takes_s in list(self._takes_s.items()):
            fetched_s = attempt.begun_s + self._machines.fetch_share * takes_s
            if attempt.task.kind == "reduce" and self.now < fetched_s:
                self._schedule.failed(attempt)
                self._end(attempt, "failed")
                heapq.heappush(self._idle, attempt.worker)

    def _end(self, attempt, fate):
        takes_s = self._takes_s.pop(attempt)
        self.attempts.append(Ran(attempt, self.now, takes_s, fate))
