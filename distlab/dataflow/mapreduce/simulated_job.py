"""The result of a simulated job: its attempts, and rates over time made from them.

`Machines` describes them; its defaults are the machines that sort 10¹⁰ records in the
paper, as far as it describes them.

Source: Dean and Ghemawat, "MapReduce" (2004), section 5.
"""

import math
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from distlab.dataflow.mapreduce.task_states import Attempt, Task
from distlab.trace import Event, Trace
from distlab.units import GB, MiB, readable_seconds

__all__ = ["Machines", "Ran", "SimulatedJob"]

_USUALLY_SLOW = 8 / 9  # without the slowest tenth of all outliers


@dataclass(frozen=True)
class Machines:
    """Parameters of simulated machines, each published or assumed.

    workers: 1,746, as in section 5.5 of the paper.
    split_bytes: what a map task reads, section 5.3.
    startup_s: "about a minute" until the program is everywhere, section 5.2.
    map_s: median of a map task: when all workers together read 13 GB/s, the peak in
    section 5.3.
    reduce_s: median of a reduce task. Assumed, together with the next two: one choice
    for all of the paper's runs, made with their times in view.
    spread: of the logarithm of these times, from attempt to attempt. Assumed.
    slow_share: how many of the machines are slow. Assumed; how much is lost without
    backups depends on it more than on anything else.
    slow_least, slow_usual, slow_most: how many times slower those are. Four in five
    outliers take 1.5 to 2.5 times the median, one in ten more than 10 times
    (Ananthanarayanan et al., "Reining in the Outliers in Map-Reduce Clusters using
    Mantri", 2010, section 4). That last tenth is left out here. Assumed: the others'
    factors are evenly likely below 2.5, and above it their logarithms are.
    fetch_share, write_share: of a reduce's time; between the two it sorts. Assumed.
    look_s: how often idle workers ask for a backup to make.
    """

    workers: int = 1_746
    split_bytes: int = 64 * MiB
    startup_s: float = 60.0
    map_s: float = 64 * MiB / (13 * GB / 1_746)
    reduce_s: float = 170.0
    spread: float = 0.3
    slow_share: float = 0.01
    slow_least: float = 1.5
    slow_usual: float = 2.5
    slow_most: float = 10.0
    fetch_share: float = 0.4
    write_share: float = 0.4
    look_s: float = 1.0

    def factors(self, seed: int) -> list[float]:
        """Return the slowdown factor of each worker; 1.0 is the usual speed."""
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
        """Return the duration of an attempt on a machine of usual speed, in seconds.

        It depends on the attempt and the seed alone, so two runs differ only by the
        parameters changed between them, and not by chance.
        """
        usual_s = self.map_s if attempt.task.kind == "map" else self.reduce_s
        return usual_s * Random(f"{seed}: {attempt}").lognormvariate(0, self.spread)


_ROWS = ("input", "shuffle", "output")


class Ran(NamedTuple):
    """An attempt, and how it ended.

    takes_s: its full duration, if nothing ends it earlier.
    fate: "done"; "too late", after another attempt at its task; "lost" with its worker;
    "failed", because a map output it needed was lost; or "given up" at the job's end.
    """

    attempt: Attempt
    end_s: float
    takes_s: float
    fate: str


@dataclass
class SimulatedJob:
    """A finished simulated job.

    elapsed_s: from its start to the end of the last reduce.
    attempts: in the order in which they ended. undone: (when, map task), for each
    completed map whose output was lost. deaths: (when, worker).
    """

    machines: Machines
    maps: int
    reduces: int
    elapsed_s: float
    attempts: list[Ran]
    undone: list[tuple[float, Task]]
    deaths: list[tuple[float, int]]

    def __repr__(self):
        fates = {}
        for ran in self.attempts:
            fates[ran.fate] = fates.get(ran.fate, 0) + 1
        described = ", ".join(f"{count:,} {fate}" for fate, count in fates.items())
        undone = f" {len(self.undone):,} maps undone." if self.undone else ""
        took = readable_seconds(self.elapsed_s)
        return (
            f"{self.machines.workers:,} simulated workers, {took}. "
            f"{len(self.attempts):,} attempts: {described}.{undone}"
        )

    def rates(self, step_s: float = 10.0) -> dict[str, list[tuple[float, float]]]:
        """Return "input", "shuffle" and "output": (when, bytes per second) each.

        A map reads its split evenly over its time; the reduces fetch and write as many
        bytes in all. Input that a death undoes counts below zero, as in figure 3 of
        the paper.
        """
        bins = math.ceil(self.elapsed_s / step_s) + 1
        rows = {name: [0.0] * bins for name in _ROWS}
        for ran in self.attempts:
            begun_s = ran.attempt.begun_s
            for name, first, last, size in self._parts(ran.attempt.task):
                start_s = begun_s + first * ran.takes_s
                end_s = begun_s + last * ran.takes_s
                rate = size / (end_s - start_s)
                _spread(rows[name], step_s, start_s, min(end_s, ran.end_s), rate)
        for when_s, _ in self.undone:
            rows["input"][int(when_s // step_s)] -= self.machines.split_bytes / step_s
        return {
            name: [((at + 0.5) * step_s, rate) for at, rate in enumerate(row)]
            for name, row in rows.items()
        }

    def _parts(self, task):
        """Return (row, begin, end, bytes) of a task's transfers, as shares of time."""
        machines = self.machines
        if task.kind == "map":
            return [("input", 0.0, 1.0, machines.split_bytes)]
        each = self.maps * machines.split_bytes / self.reduces
        fetched = "shuffle", 0.0, machines.fetch_share, each
        return [fetched, ("output", 1 - machines.write_share, 1.0, each)]

    @property
    def trace(self) -> Trace:
        """The attempts and deaths of all workers, in the form of a real job's trace."""
        events, given = [], {}
        for ran in sorted(self.attempts, key=lambda ran: ran.attempt.begun_s):
            worker = ran.attempt.worker
            given[worker] = given.get(worker, 0) + 1
            ended = "" if ran.fate in ("done", "too late") else f", {ran.fate}"
            label = f"{ran.attempt}{ended}"
            what = "work", None, 0, given[worker], label
            events.append(Event(worker, ran.attempt.begun_s, ran.end_s, *what))
        for when_s, worker in self.deaths:
            if when_s <= self.elapsed_s:
                what = "fault", None, 0, 0, "kill"
                events.append(Event(worker, when_s, when_s, *what))
        return Trace(self.machines.workers, events, who="worker")


def _spread(row, step_s, start_s, end_s, rate):
    """Add a rate to the bins between two times, weighted by the overlap with each."""
    for at in range(int(start_s // step_s), int(end_s // step_s) + 1):
        covered_s = min(end_s, (at + 1) * step_s) - max(start_s, at * step_s)
        if covered_s > 0:
            row[at] += rate * covered_s / step_s
