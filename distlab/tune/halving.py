"""Successive halving, synchronous and asynchronous: which trials go on, and when.

    rung 2   27 steps   ██                      1/eta of those below
    rung 1    9 steps   ██ ██ ██
    rung 0    3 steps   ██ ██ ██ ██ ██ ██ ██ ██ ██

Synchronous halving promotes when a rung is complete; ASHA whenever a worker is free.

Source: Jamieson and Talwalkar (2016); Li et al., A System for Massively Parallel
Hyperparameter Tuning (2020, arXiv:1810.05934), algorithms 1 and 2.
"""

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from distlab.errors import InvalidArgument
from distlab.tune.tuning_run import TuningJob, check_whole

__all__ = [
    "Asha",
    "SynchronousHalving",
    "TrialScheduler",
    "promote",
    "random_search",
    "rung_steps",
]


def rung_steps(least: int, most: int, eta: int = 3) -> list[int]:
    """Return the steps of each rung: least, least * eta, ..., at most `most`."""
    check_whole(least=(least, 1), most=(most, least), eta=(eta, 2))
    rungs = [least]
    while rungs[-1] * eta <= most:
        rungs.append(rungs[-1] * eta)
    return rungs


def promote(losses: Mapping[int, float], eta: int = 3) -> list[int]:
    """Return at most len(losses) // eta trials of a rung, best first.

    losses: trial -> loss. Of equal losses the lower trial is better. NaN counts among
    them and is never returned.
    """
    check_whole(eta=(eta, 2))
    ranked = sorted(losses, key=lambda trial: (_ordered(losses[trial]), trial))
    best = ranked[: len(ranked) // eta]
    return [trial for trial in best if not math.isnan(losses[trial])]


def _ordered(loss):
    return (1, 0.0) if math.isnan(loss) else (0, loss)


class TrialScheduler:
    """Jobs for free workers, and what is known of their trials.

    trials: the number of configurations to begin, enough that one is trained to the
    end: eta**k for rungs 0 to k. rungs: see `rung_steps`.
    tries: a job that is lost so often is given up, and its loss is NaN; 1: it is not
    done again.
    losses: for each rung, trial -> loss. saved: trial -> step of its last checkpoint.

    Invariant: a rung has one loss of a trial, the first that was reported.
    """

    def __init__(
        self, trials: int, rungs: Sequence[int], eta: int = 3, *, tries: int = 3
    ):
        check_whole(trials=(trials, 1), eta=(eta, 2), tries=(tries, 1))
        least = 1
        for steps in rungs:
            check_whole(rungs=(steps, least))
            least = steps + 1
        if not rungs:
            raise InvalidArgument("rungs is empty: give the steps of at least one.")
        last = len(rungs) - 1
        if trials < eta**last:
            empty = next(rung for rung in range(last + 1) if trials < eta**rung)
            raise InvalidArgument(
                f"{trials} trials with eta={eta} leave none for rung {empty}: begin "
                f"with at least {eta**last}, or give fewer rungs."
            )
        self.trials, self.rungs, self.eta = trials, list(rungs), eta
        self.tries, self.losses = tries, [{} for _ in rungs]
        self.saved, self._lost, self._times_lost = {}, deque(), Counter()

    def next_job(self) -> TuningJob | None:
        """Return the job of a free worker, or None if there is none for now.

        A job whose worker died goes first.
        """
        while self._lost:
            trial, rung = self._lost.popleft()
            if self.wanted(trial, rung):  # else its worker was alive, and has reported
                return self._job(trial, rung)
        found = self.choose()
        return self._job(*found) if found else None

    def choose(self) -> tuple[int, int] | None:
        """Return (trial, rung) of a job that was not given out yet, or None."""
        raise NotImplementedError

    def on_report(self, trial: int, rung: int, loss: float) -> None:
        """Note a trial's loss at the end of a rung; a second one changes nothing."""
        if self.wanted(trial, rung):
            self.losses[rung][trial] = loss
            self.on_saved(trial, self.rungs[rung])

    def on_saved(self, trial: int, step: int) -> None:
        """Note that a trial has a checkpoint; one that is older changes nothing."""
        self.saved[trial] = max(step, self.saved.get(trial, 0))

    def on_lost(self, trial: int, rung: int) -> None:
        """Put a job back whose worker is taken for dead, or give it up."""
        job = trial, rung
        if job in self._lost or not self.wanted(trial, rung):
            return
        self._times_lost[job] += 1
        if self._times_lost[job] == self.tries:
            self.losses[rung][trial] = math.nan
        else:
            self._lost.append(job)

    def wanted(self, trial: int, rung: int) -> bool:
        """Return True if no attempt at this job has reported."""
        return trial not in self.losses[rung]

    def _job(self, trial, rung):
        return TuningJob(trial, rung, self.saved.get(trial, 0), self.rungs[rung])


class Asha(TrialScheduler):
    """Asynchronous successive halving: a free worker never waits for a rung.

    It promotes the best promotable trial of the highest rung that has one; if none
    has, it begins a new trial. Source: Li et al. (2020), algorithm 2.
    """

    def __init__(self, trials: int, rungs: Sequence[int], eta: int = 3, **options):
        super().__init__(trials, rungs, eta, **options)
        self.promoted = [set() for _ in rungs]
        self._begun = 0

    def choose(self) -> tuple[int, int] | None:
        """Return a trial that is in the top 1/eta of its rung, or a new one."""
        for rung in reversed(range(len(self.rungs) - 1)):
            for trial in promote(self.losses[rung], self.eta):
                if trial not in self.promoted[rung]:
                    self.promoted[rung].add(trial)
                    return trial, rung + 1
        if self._begun == self.trials:
            return None
        self._begun += 1
        return self._begun - 1, 0


class SynchronousHalving(TrialScheduler):
    """Successive halving: a rung begins when the one below is complete.

    Workers without a job wait. Source: Li et al. (2020), algorithm 1.
    """

    def __init__(self, trials: int, rungs: Sequence[int], eta: int = 3, **options):
        super().__init__(trials, rungs, eta, **options)
        self._rung, self._size, self._ready = 0, trials, deque(range(trials))

    def choose(self) -> tuple[int, int] | None:
        """Return the next trial of the rung that is under way."""
        done = self.losses[self._rung]
        if len(done) == self._size and self._rung + 1 < len(self.rungs):
            self._ready = deque(promote(done, self.eta))
            self._rung, self._size = self._rung + 1, len(self._ready)
        return (self._ready.popleft(), self._rung) if self._ready else None


def random_search(trials: int, steps: int, **options) -> TrialScheduler:
    """Return a scheduler that trains every trial for all `steps`: one rung."""
    return Asha(trials, [steps], **options)
