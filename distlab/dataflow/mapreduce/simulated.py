"""The result of a simulated job: its attempts, and rates over time made from them."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from distlab.dataflow.mapreduce.machines import Machines
from distlab.dataflow.mapreduce.schedule import Attempt, Task
from distlab.trace import Event, Trace
from distlab.units import readable_seconds

__all__ = ["Ran", "SimulatedJob"]

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
