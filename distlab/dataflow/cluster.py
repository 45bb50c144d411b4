"""Thousands of machines on a virtual clock, under the decisions of a real job.

    Cluster: how long an attempt takes ──┐
    deaths: who dies, and when ──────────┼──▶ simulate ──▶ Simulated: attempts, rates
    Schedule: who does what next ────────┘

The loop is that of `job` with events in place of processes, and `Schedule` is the very
class. Left at its defaults it is the sort of 10¹⁰ records in the paper's section 5.3,
with two differences that are those of this package: a machine does one task at a time,
and reduces begin when the last map is done.

Source: Dean and Ghemawat, "MapReduce" (2004), sections 3.3, 3.6 and 5.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from distlab.dataflow.schedule import Attempt, Schedule
from distlab.dataflow.simulated import Ran, Simulated
from distlab.errors import InvalidArgument
from distlab.units import GB, MiB

__all__ = ["Cluster", "simulate"]

_USUALLY_SLOW = 8 / 9  # without the slowest tenth of all outliers


@dataclass(frozen=True)
class Cluster:
    """Machines, and how long they take: what is published, and what is assumed.

    workers: 1,746, as in section 5.5 of the paper.
    startup_s: "about a minute" until the program is everywhere, section 5.2.
    map_s: median of a map task: 64 MiB, when all workers together read 13 GB/s, the
    peak in section 5.3.
    reduce_s: median of a reduce task. Assumed, together with the next two, such that
    the undisturbed sort ends near the paper's 891 s.
    spread: of the logarithm of these times, from attempt to attempt. Assumed.
    slow_share: how many of the machines are slow. Assumed; how much is lost without
    backups depends on it more than on anything else.
    slow_least, slow_usual, slow_most: how many times slower those are. Four in five
    outliers take 1.5 to 2.5 times the median, one in ten more than 10 times
    (Ananthanarayanan et al., "Reining in the Outliers in Map-Reduce Clusters using
    Mantri", 2010, section 4). That last tenth is left out here; that the others' factors
    are evenly likely below 2.5, and above it their logarithms, is assumed.
    fetch_share, write_share: of a reduce's time; between the two it sorts. Assumed.
    look_s: how often idle workers ask for a backup to make.
    """

    workers: int = 1_746
    startup_s: float = 60.0
    map_s: float = 64 * MiB / (13 * GB / 1_746)
    reduce_s: float = 170.0
    spread: float = 0.3
    slow_share: float = 0.015
    slow_least: float = 1.5
    slow_usual: float = 2.5
    slow_most: float = 10.0
    fetch_share: float = 0.4
    write_share: float = 0.4
    look_s: float = 1.0

    def factors(self, seed: int) -> list[float]:
        """Return how many times slower than usual each worker is."""
        random = Random(f"{seed}: machines")
        return [
            self._slow(random) if random.random() < self.slow_share else 1.0
            for _ in range(self.workers)
        ]

    def _slow(self, random):
        if random.random() < _USUALLY_SLOW:
            return random.uniform(self.slow_least, self.slow_usual)
        return self.slow_usual * (self.slow_most / self.slow_usual) ** random.random()

    def attempt_s(self, attempt: Attempt, seed: int) -> float:
        """Return how long an attempt takes on a usual machine.

        It depends on nothing but the attempt and the seed, so that two runs differ by
        what is changed between them, and not by luck.
        """
        usual_s = self.map_s if attempt.task.kind == "map" else self.reduce_s
        return usual_s * Random(f"{seed}: {attempt}").lognormvariate(0, self.spread)


def simulate(
    maps: int = 15_000,
    reduces: int = 4_000,
    *,
    cluster: Cluster | None = None,
    backups: bool = True,
    deaths: Iterable[tuple[float, int]] = (),
    seed: int = 0,
) -> Simulated:
    """Run a job on simulated machines; the same seed gives the same run.

    cluster: the machines; the paper's if None.
    deaths: (when, worker); another process takes its place at once, with an empty disk.

    Raises: InvalidArgument for a job or a death that cannot be.
    """
    cluster = cluster or Cluster()
    deaths = sorted(deaths)
    if maps < 0 or reduces < 1 or cluster.workers < 1:
        raise InvalidArgument(
            "a job has a reduce task, and a worker to do it; got "
            f"{reduces=}, {maps=}, workers={cluster.workers}."
        )
    for when_s, worker in deaths:
        if when_s < 0 or worker not in range(cluster.workers):
            raise InvalidArgument(
                f"deaths are (seconds, worker), and got {(when_s, worker)}; of "
                f"{cluster.workers} workers the last is {cluster.workers - 1}."
            )
    run = _Run(cluster, Schedule(maps, reduces, backups=backups), deaths, seed)
    run.to_the_end()
    return Simulated(cluster.workers, maps, run.now, run.attempts, run.undone, deaths)


class _Run:
    """A job under way.

    now: the virtual time. attempts: those that have ended. undone: (when, map task)
    for each whose output was lost with its worker.
    """

    def __init__(self, cluster, schedule, deaths, seed):
        self.now = cluster.startup_s
        self.attempts, self.undone = [], []
        self._cluster, self._schedule, self._seed = cluster, schedule, seed
        self._factors = cluster.factors(seed)
        self._idle = list(range(cluster.workers))  # a heap
        self._ends = []  # a heap of (when, attempt)
        self._takes_s = {}  # attempt under way -> its duration
        self._deaths = list(reversed(deaths))

    def to_the_end(self):
        """Go from event to event, handing out after each what can be."""
        while not self._schedule.finished:
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
            takes_s = self._cluster.attempt_s(attempt, self._seed)
            takes_s *= self._factors[worker]
            self._takes_s[attempt] = takes_s
            heapq.heappush(self._ends, (self.now + takes_s, attempt))

    def _next_s(self):
        moments = [end_s for end_s, _ in self._ends[:1]]
        moments += [when_s for when_s, _ in self._deaths[-1:]]
        moments += [self.now + self._cluster.look_s] if self._idle else []
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
        """End the reduces that have not fetched all, and look for what is gone."""
        for attempt, takes_s in list(self._takes_s.items()):
            fetched_s = attempt.begun_s + self._cluster.fetch_share * takes_s
            if attempt.task.kind == "reduce" and self.now < fetched_s:
                self._schedule.failed(attempt)
                self._end(attempt, "failed")
                heapq.heappush(self._idle, attempt.worker)

    def _end(self, attempt, fate):
        takes_s = self._takes_s.pop(attempt)
        self.attempts.append(Ran(attempt, self.now, takes_s, fate))
