"""The record of a tuning run: each worker's attempts, and the best loss over time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from distlab.errors import InvalidArgument
from distlab.trace import Event, Trace

__all__ = ["TuningAttempt", "TuningJob", "TuningRun", "check_whole"]


class TuningJob(NamedTuple):
    """Training of a trial from step `start`, its checkpoint, to `stop`, its rung's."""

    trial: int
    rung: int
    start: int
    stop: int


class TuningAttempt(NamedTuple):
    """One worker's attempt at a job, from `begun_s` to `end_s`.

    start, stop: the steps at which it began and ended.
    loss: the validation loss that it reported, else None.
    outcome: "done"; "late", if another attempt had reported before; "lost" with its
    worker; "failed", if the objective raised; or "given up", if it was stopped.
    """

    worker: int
    trial: int
    rung: int
    start: int
    stop: int
    begun_s: float
    end_s: float
    loss: float | None
    outcome: str


@dataclass(frozen=True)
class TuningRun:
    """All attempts in the order in which they ended, on `workers` workers.

    deaths: (seconds, worker) of each worker that died.
    """

    attempts: Sequence[TuningAttempt]
    workers: int
    deaths: Sequence[tuple[float, int]] = ()

    @property
    def steps_trained(self) -> int:
        """The steps that all workers trained, those of lost attempts included."""
        return sum(one.stop - one.start for one in self.attempts)

    def improvements(self) -> list[TuningAttempt]:
        """Return the attempts that reported a lower loss than any before them."""
        found, best = [], math.inf
        for one in self.attempts:
            if one.loss is not None and one.loss < best:  # NaN is not
                found, best = [*found, one], one.loss
        return found

    def best_over_time(self) -> list[tuple[float, float]]:
        """Return (seconds, lowest loss so far), one pair for each improvement."""
        return [(one.end_s, one.loss) for one in self.improvements()]

    def best_over_steps(self) -> list[tuple[float, float]]:
        """Return (steps trained by all workers, lowest loss), one per improvement."""
        return [(self.steps_by(when_s), loss) for when_s, loss in self.best_over_time()]

    def steps_by(self, at_s: float) -> float:
        """Return the steps that all workers had trained by a time."""
        return sum(_share(one, at_s) * (one.stop - one.start) for one in self.attempts)

    def steps_to(self, loss: float) -> float:
        """Return the steps trained by the first report of at most `loss`, or inf."""
        return next((n for n, best in self.best_over_steps() if best <= loss), math.inf)

    def seconds_to(self, loss: float) -> float:
        """Return the time of the first report of at most `loss`, or inf."""
        return next((s for s, best in self.best_over_time() if best <= loss), math.inf)

    @property
    def trace(self) -> Trace:
        """The attempts, and deaths until their end, as of a data job: `show.tasks`."""
        events, given = [], [0] * self.workers
        rungs = any(one.rung for one in self.attempts)
        last_s = max((one.end_s for one in self.attempts), default=0.0)
        for one in sorted(self.attempts, key=lambda one: one.begun_s):
            given[one.worker] += 1
            fate = "" if one.outcome in ("done", "late") else f", {one.outcome}"
            rung = f"rung {one.rung}, " if rungs else ""
            label = f"{rung}trial {one.trial}{fate}"
            what = "work", None, 0, given[one.worker], label
            events.append(Event(one.worker, one.begun_s, one.end_s, *what))
        for at_s, worker in self.deaths:
            if at_s <= last_s:
                events.append(Event(worker, at_s, at_s, "fault", None, 0, 0, "kill"))
        return Trace(self.workers, events, who="worker")


def _share(one, at_s):
    """Return the share of an attempt that was over at a time."""
    if at_s >= one.end_s:
        return 1.0
    return max(0.0, at_s - one.begun_s) / (one.end_s - one.begun_s)


def check_whole(**named: tuple[int, int]) -> None:
    """Raise InvalidArgument unless each is a whole number; named: (number, least)."""
    for name, (number, least) in named.items():
        if type(number) is not int or number < least:
            raise InvalidArgument(
                f"{name}={number!r}: give a whole number, at least {least}."
            )
