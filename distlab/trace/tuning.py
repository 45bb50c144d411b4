"""The record of a hyperparameter search: which worker ran which trial, and its end."""

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["TrialRun", "TuningRecord"]


class TrialRun(NamedTuple):
    """One stretch of a trial on one worker, up to its next decision.

    rung: the number of times that the trial was promoted before. start, end: seconds.
    steps: trained in this stretch. loss: at its end, None if there is none.
    outcome: "complete", "stopped" (by a rule), "failed", or "lost" with its worker.
    """

    worker: int
    trial: int
    rung: int
    start: float
    end: float
    steps: int
    loss: float | None
    outcome: str


@dataclass(frozen=True)
class TuningRecord:
    """All stretches of all trials of a search by `workers` workers."""

    workers: int
    runs: list[TrialRun]

    @property
    def steps(self) -> int:
        """The steps trained by all trials together, lost ones included."""
        return sum(run.steps for run in self.runs)
