"""Optuna: worker processes that share one study in one storage, and may be killed.

    def storage():  # called in every process
        url = f"sqlite:///{folder}/trials.db"
        return RDBStorage(url, heartbeat_interval=1, grace_period=2, ...)

    search = optuna.optimize(objective, storage, trials=40, workers=4)
    search.best.params

The owner gives every idle worker the task "one trial"; which trial it is, and with
which parameters, the worker and the storage settle between them. A worker that dies is
replaced. Its trial is left RUNNING: a storage with heartbeats fails it after its grace
period, and can enqueue it again; one without them, as a journal, never does. At its end
`optimize` waits for that, which `study.optimize` does not.
"""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from unittest.mock import patch

from distlab.calls.serialize import pack_functions
from distlab.dataflow.worker import AtRecord, die_if_planned
from distlab.dataflow.workers import Raised, WorkerLost, Workers, folder_in
from distlab.errors import EngineFailed, EngineMissing, InvalidArgument, TaskFailed
from distlab.faults import WorkerFault, check_worker_faults
from distlab.patience import patience
from distlab.tune import TuningAttempt, TuningRun

__all__ = ["OptunaSearch", "is_installed", "optimize"]

_PACKAGES = {"optuna": "optuna", "sqlalchemy": "sqlalchemy"}
_TASK = "distlab:task"
_DEATHS = 5  # unplanned, without a trial that ended between them


def is_installed() -> bool:
    """Return True if Optuna and its access to databases are installed."""
    return not _missing()


def _missing():
    return [name for module, name in _PACKAGES.items() if not find_spec(module)]


@dataclass(frozen=True)
class OptunaSearch(TuningRun):
    """The record of a search, and its trials as the storage has them at its end."""

    trials: Sequence = field(default=(), repr=False)

    @property
    def best(self):
        """The complete trial of the smallest value, an `optuna.trial.FrozenTrial`."""
        return min(self._complete(), key=lambda trial: trial.value)

    def _complete(self):
        found = [trial for trial in self.trials if trial.state.name == "COMPLETE"]
        if not found:
            raise InvalidArgument(f"no trial is complete, only: {dict(self.states)}.")
        return found

    @property
    def states(self) -> Counter:
        """The number of trials in each state, such as {"COMPLETE": 40, "FAIL": 2}."""
        return Counter(trial.state.name for trial in self.trials)

    @property
    def retried(self) -> dict[int, int]:
        """The number of each trial that ran again -> that of the trial it repeats."""
        attrs = {trial.number: trial.system_attrs for trial in self.trials}
        return {n: a["failed_trial"] for n, a in attrs.items() if "failed_trial" in a}


def optimize(
    objective: Callable,
    storage: Callable,
    *,
    trials: int = 20,
    workers: int = 4,
    sampler: Callable | None = None,
    pruner: object = None,
    faults: WorkerFault | Sequence[WorkerFault] = (),
) -> OptunaSearch:
    """Minimize `objective(trial)` in worker processes; return the record.

    storage: a function that returns the Optuna storage of this search, called in every
        process. sampler: a function from a worker's seed to its sampler, by default
        `TPESampler(seed=seed)`. pruner: Optuna's, by default none.
    trials: configurations; one that ran again counts once.
    faults: `KillWorker(worker, task)` kills a worker in that of its tasks, at the first
        `trial.report`, or before the value is stored; `SlowWorker`.

    Raises: EngineMissing; InvalidArgument; TaskFailed naming the trial that raised;
    EngineFailed if a worker cannot use the storage.
    """
    _check(objective, storage, trials, workers)
    faults = check_worker_faults(faults, workers)
    functions = pack_functions([objective, storage, sampler, pruner], "a worker")
    with _quiet():
        search = _Search(storage, trials, workers)
        pool = Workers(
            workers,
            functions,
            folder=folder_in(None),
            faults=faults,
            preload=["optuna.storages", "sqlalchemy.dialects.sqlite", __name__],
        )
        try:
            return search.run(pool)
        except KeyboardInterrupt:
            raise pool.interrupted(f"Interrupted: {search.how_far()}.") from None
        finally:
            pool.close()


def _check(objective, storage, trials, workers):
    """Raise if Optuna is missing, or an argument is of no use."""
    if missing := _missing():
        raise EngineMissing.of("engines.optuna", missing, "tune")
    for name, fn in (("objective", objective), ("storage", storage)):
        if not callable(fn):
            raise InvalidArgument(
                f"{name} is a function, and got {fn!r}. For example: "
                "storage=lambda: RDBStorage(url)"
            )
    for name, number in (("trials", trials), ("workers", workers)):
        if not isinstance(number, int) or number < 1:
            raise InvalidArgument(f"{name} is a number from 1, and got {number!r}.")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna's notes on studies, and on what is experimental, from stderr."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


@dataclass
class _TrialTask:
    """A task "one trial": which worker has it, from when to when, and how it ended."""

    worker: int
    begun_s: float
    end_s: float | None = None
    number: int | None = None
    ended: str = ""

    def attempt(self, trial) -> TuningAttempt:
        """Return the record of this task, whose trial the storage has so."""
        losses, loss = trial.intermediate_values, None if self.ended else trial.value
        ended = self.ended or ("failed" if trial.state.name == "FAIL" else "done")
        # Steps are counted from 1, or from 0 if the objective does so.
        steps = max(losses, default=0) + (0 in losses)
        times = self.begun_s, self.end_s, loss
        return TuningAttempt(self.worker, trial.number, 0, 0, steps, *times, ended)


def _is_dead(trial):
    return trial.state.name in ("RUNNING", "FAIL")


class _Search:
    """The owner's side: which worker may begin a trial, and what became of each task.

    Invariant: the configurations in the storage, and the tasks whose trial is not yet
    in it, are together no more than `trials`.
    """

    def __init__(self, storage, trials, workers):
        import optuna

        try:
            self.study = optuna.create_study(storage=storage())
        except Exception as error:
            raise _unusable("this process", repr(error)) from None
        self.heartbeats = self._seconds_of_grace()
        self.trials, self.workers = trials, workers
        self.tasks = {}
        self.deaths = 0

    def _seconds_of_grace(self):
        """Return the seconds after which a silent trial fails; None for never."""
        kept = self.study._storage
        kept = getattr(kept, "_backend", kept)  # below Optuna's cache
        interval = getattr(kept, "heartbeat_interval", None)
        return interval and (getattr(kept, "grace_period", None) or 2 * interval)

    def run(self, pool):
        quiet_since = time.monotonic()
        while True:
            self._fail_stale()
            while pool.idle and self._left() > 0:
                self._give(pool)
            if not self._running() and not self._may_come_back(quiet_since):
                return self._record()
            for what in pool.wait(0.2):
                quiet_since = time.monotonic()
                self._take(what, pool)

    def _fail_stale(self):
        import optuna

        try:
            optuna.storages.fail_stale_trials(self.study)
        except Exception as error:
            raise _unusable("this process", repr(error)) from None

    def _give(self, pool):
        worker, task = min(pool.idle), len(self.tasks)
        self.tasks[task] = _TrialTask(worker, pool.now())
        pool.give(worker, f"task {task}", run_trial, self.study.study_name, task)

    def _running(self):
        return {task for task, each in self.tasks.items() if each.end_s is None}

    def _left(self):
        """Return the number of further tasks to give out."""
        running, trials = self._running(), self.study.get_trials(deepcopy=False)
        repeated = {n for t in trials for n in t.system_attrs.get("retry_history", ())}
        waits = sum(trial.state.name == "WAITING" for trial in trials)
        own = sum(
            trial.number not in repeated and trial.user_attrs.get(_TASK) not in running
            for trial in trials
        )
        return self.trials - own - len(running) + waits

    def _may_come_back(self, since):
        """Return True while the storage may still fail a dead worker's trial."""
        trials = self.study.get_trials(deepcopy=False)
        if not self.heartbeats or all(trial.state.is_finished() for trial in trials):
            return False
        return time.monotonic() - since < patience(self.heartbeats + 5)

    def _take(self, what, pool):
        (task,) = [t for t in self._running() if self.tasks[t].worker == what.worker]
        done = self.tasks[task]
        done.end_s = pool.now()
        if isinstance(what, Raised):
            raise self._raised(what, pool)
        if isinstance(what, WorkerLost):
            done.ended = "lost"
            self.deaths += not what.planned
        else:
            done.number, done.ended = what.value
            self.deaths = 0
        if self.deaths >= _DEATHS:
            raise TaskFailed(
                f"{self.deaths} workers in a row ended in a trial; the last, worker "
                f"{what.worker}, {what.how}. Call it here with a FixedTrial.",
                task=f"task {task}",
                worker=what.worker,
                cause=what.how,
                trace=pool.trace(),
            )

    def _raised(self, what, pool):
        if not what.facts["where"]:  # not in the objective
            return _unusable(f"worker {what.worker}", what.said)
        story = [f"{what.facts['where']} raised {what.said}", *what.lines()[:-1]]
        return TaskFailed(
            "\n".join(story),
            task=what.facts["where"],
            worker=what.worker,
            cause=what.facts["error"],
            trace=pool.trace(),
        )

    def how_far(self):
        ended = sum(each.number is not None for each in self.tasks.values())
        return f"{ended} trials of {self.trials} had ended"

    def _record(self):
        trials = self.study.get_trials()
        lost = {t.user_attrs.get(_TASK): t.number for t in trials if _is_dead(t)}
        tasks = sorted(self.tasks.items(), key=lambda each: each[1].end_s)
        attempts = []
        for task, each in tasks:
            number = lost.get(task) if each.ended == "lost" else each.number
            if number is not None:  # else the worker died before it had a trial
                attempts.append(each.attempt(trials[number]))
        deaths = [
            (each.end_s, each.worker) for _, each in tasks if each.ended == "lost"
        ]
        return OptunaSearch(attempts, self.workers, deaths, trials)


def _unusable(who, why):
    return EngineFailed(
        f"{who} cannot use the storage: {why}\n\nIs its folder or server gone, or does "
        "another process hold a lock on it? SQLite has one writer at a time, and none "
        "over a network file system."
    )


_opened = {}


def run_trial(functions: Sequence, study_name: str, task: int) -> tuple[int, str]:
    """Run one trial, in a worker: one that waits in the storage, else a new one.

    Returns: its number, and "late" if another attempt at it had ended before.
    """
    import optuna
    from optuna.exceptions import UpdateFinishedTrialError

    objective, storage, sampler, pruner = functions
    with _quiet():
        if "study" not in _opened:
            _opened["study"] = _study(study_name, storage, sampler, pruner, task)
        study, begun = _opened["study"], []

        def watched(trial):
            begun.append(trial.number)
            trial.set_user_attr(_TASK, task)
            if hasattr(study._storage, "record_heartbeat"):
                study._storage.record_heartbeat(trial._trial_id)
            report = trial.report

            def report_and_die_if_planned(value, step):
                report(value, step)
                die_if_planned()

            trial.report = report_and_die_if_planned
            value = _called(objective, trial)
            die_if_planned()
            return value

        try:
            # Two processes that fail a stale trial at once would both have it retried:
            # in SQLite reading its state and changing it are two steps.
            with patch.object(optuna.storages, "fail_stale_trials"):
                study.optimize(watched, n_trials=1)
        except (ValueError, UpdateFinishedTrialError, AssertionError):
            # Optuna refuses a value of what has ended; an AssertionError if it failed.
            if not begun:
                raise
            return begun[0], "late"
        return begun[0], ""


def _study(name, storage, sampler, pruner, seed):
    import optuna

    sampler = sampler(seed) if sampler else optuna.samplers.TPESampler(seed=seed)
    how = {"sampler": sampler, "pruner": pruner or optuna.pruners.NopPruner()}
    return optuna.load_study(study_name=name, storage=storage(), **how)


def _called(objective, trial):
    from optuna.exceptions import OptunaError  # pruned, storage gone, ended elsewhere

    try:
        return objective(trial)
    except OptunaError:
        raise
    except Exception as error:
        described = ", ".join(
            f"{name}={value!r}" for name, value in trial.params.items()
        )
        raise AtRecord(f"trial {trial.number} ({described})") from error
