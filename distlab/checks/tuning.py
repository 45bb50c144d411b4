"""Exercise 18: ASHA's rung rule, deaths of its workers, and the steps that it trains.

    the learner's scheduler ◀── calls ── a simulated cluster, in a process: its log
    the expected scheduler  ◀── the log, call by call, up to the first difference

The expected one keeps no state but the log: it counts anew for each answer.
Source: Li et al. (2020, arXiv:1810.05934), algorithm 2.
"""

import math
import random
from functools import cache, partial
from statistics import median
from types import SimpleNamespace

from distlab.checks import kit, tuning_cases
from distlab.checks.kit import Inconclusive, Wrong, check
from distlab.checks.tuning_rules import HINTS as HINTS
from distlab.checks.tuning_rules import NAN, ExpectedScheduler, first_mistake
from distlab.faults import Crash, Pause
from distlab.show import tasks
from distlab.show.table import aligned
from distlab.tune import (
    Asha,
    SynchronousHalving,
    TuningAttempt,
    TuningRun,
    random_search,
    rung_steps,
)
from distlab.tune.learning_curves import draw_curves, loss_after
from distlab.tune.simulated_tuning import TuningCluster, simulate_tuning, straggling

_KEPT = "learning_curves", "simulated_tuning", "tuning_run"
WITHOUT = kit.modules_of("distlab.tune", but=_KEPT)
SAVE_EVERY, RUNS, SEEDS = 3, 10, range(5)
CONTRACT = kit.Contract(
    ties={
        "lower": "of equal losses the lower trial is better",
        "higher": "of equal losses the higher trial is better",
    },
    top={
        "down": "the top of n trials are n / eta, rounded down",
        "up": "the top of n trials are n / eta, rounded up",
    },
    nan={
        "counted": "a trial whose loss is NaN counts in n",
        "left out": "a trial whose loss is NaN does not count in n",
    },
    lost={
        "oldest": "the job that was lost first is done again first",
        "newest": "the job that was lost last is done again first",
    },
)
_random = random.SystemRandom()
_CASE = "{} to {} steps, eta {}: {} trials, {} workers"


@check(_CASE)
def promotes(make, least, most, eta, trials, workers, contract=kit.PUBLISHED):
    """Check the rungs, the top of a rung, and every job of a run without faults."""
    _judge(make, 1, contract, least, most, eta, trials, workers)


@check(f"{_CASE}; some die or pause")
def survives(make, least, most, eta, trials, workers, contract=kit.PUBLISHED):
    """Check the same with workers that die, late reports and duplicates."""
    _judge(make, 2, contract, least, most, eta, trials, workers)


@check(f"{_CASE}; some die or pause, all save")
def saves_steps(make, least, most, eta, trials, workers, contract=kit.PUBLISHED):
    """Check that no step is trained twice that a checkpoint has."""
    _judge(make, 3, contract, least, most, eta, trials, workers)


def race(make):
    """Return a table: steps trained until one of the three best losses is reported."""
    return _table(_raced(make))


# ---- the run, in a process -----------------------------------------------------------


def _raced(make):
    return [_steps_to_loss(make(256, 1, 256, 4), seed) for seed in SEEDS]


def _steps_to_loss(scheduler, seed):
    curves, draw = draw_curves(256, seed), random.Random(seed)
    times = [draw.uniform(0, 200) for _ in range(8)]
    faults = [Crash(worker, at_s, at_s + 30) for worker, at_s in enumerate(times)]
    cluster = TuningCluster(8, straggling(1.0, 0.5, seed), faults, save_every=8)
    good = sorted(loss_after(curve, 256) for curve in curves)[2]
    run = simulate_tuning(scheduler, loss_after, curves, cluster)
    return run.steps_to(good)


class _LoggedScheduler:
    """A learner's scheduler; `log` has every call with its arguments and answer."""

    def __init__(self, scheduler, plan, log):
        self._scheduler, self._plan, self.log = scheduler, plan, log
        self._draw, self._late = random.Random(plan.seed), []

    def next_job(self):
        while self._late and self._draw.random() < 0.7:
            self._ask(*self._late.pop(0))
        while len(self.log) < self._plan.calls:
            job = self._ask("next_job")
            if not self._can_run(job):
                return None
            if job[0] not in self._plan.poison:
                return job
            self._twice("on_lost", *job[:2])
        return None

    def __getattr__(self, name):
        return partial(self._twice if name.startswith("on_") else self._ask, name)

    def _twice(self, name, *args):
        """Make a call, and in some runs make it again, at once or later."""
        self._ask(name, *args)
        again = name, *args[:2], *(loss + 1 for loss in args[2:])
        if name == "on_saved":  # a copy of what was sent for the checkpoint before
            again = name, args[0], max(1, args[1] - SAVE_EVERY)
        if self._draw.random() < self._plan.again:
            self._ask(*again)
        elif self._draw.random() < self._plan.again:
            self._late.append(again)

    def _ask(self, name, *args):
        if not hasattr(self._scheduler, name) and self._plan.step < 3:
            return None
        return tuning_cases.ask(self._scheduler, self.log, name, *args)

    def _can_run(self, job):
        if type(job) is not tuple or len(job) != 4 or {*map(type, job)} != {int}:
            return False
        stop = dict(enumerate(self._plan.rungs)).get(job[1], -1)
        return job[0] in range(self._plan.trials) and 0 <= job[2] <= stop == job[3]


def _probe(make, rows, scenes, plans):
    """Return the logs of rows and scenes; and each run's log, attempts and deaths."""
    asked = [tuning_cases.answers(make, row) for row in rows]
    played = [tuning_cases.play(make, scene) for scene in scenes]
    written = all(log[-1][0] != "unwritten" for log in [*asked, *played])
    return asked, played, [_logged(make, plan) for plan in plans if written]


def _logged(make, plan):
    log, scheduler = [], make(plan.trials, plan.least, plan.most, plan.eta)
    faults = [(Pause if pauses else Crash)(*when) for pauses, *when in plan.faults]
    every = SAVE_EVERY if plan.step > 2 else None
    slow = straggling(1.0, 0.7, plan.seed)
    cluster = TuningCluster(plan.workers, slow, faults, 5.0, every)
    logged = _LoggedScheduler(scheduler, plan, log)

    def curve(losses, steps):
        return losses[plan.rungs.index(steps)]

    run = simulate_tuning(logged, curve, plan.losses, cluster)
    return log, [tuple(one) for one in run.attempts], [*run.deaths]


# ---- the comparison ------------------------------------------------------------------


def _judge(make, step, contract, *sizes):
    """Raise at the first answer in several runs that is not the expected one."""
    plans = [_plan(step, *sizes) for _ in range(RUNS)]
    scenes = [scene for scene in tuning_cases.SCENES if scene.step <= step]
    given = tuning_cases.ROWS, scenes, plans
    rows, played, runs = kit.call(_probe, make, *given, without=WITHOUT)
    _with_race(make, partial(tuning_cases.compare, make, step, rows, played, contract))
    for plan, run in zip(plans, runs, strict=True):
        _with_race(make, partial(_follow, plan, contract, *run))


def _with_race(make, compare):
    """Make a comparison; what costs steps is shown with a table of the steps."""
    try:
        compare()
    except Wrong as wrong:
        if wrong.facts["kind"] not in ("start", "wanted"):
            raise
        try:
            table = _table(kit.call(_raced, make, without=WITHOUT))
        except Wrong:  # jobs that cannot be run
            raise wrong from None
        found = f"{wrong.found}\n{table}"
        raise Wrong(found, picture=wrong.picture, **wrong.facts) from None


def _follow(plan, contract, log, attempts, deaths):
    """Raise at the first answer in a run that is not the expected one."""
    twin = ExpectedScheduler(plan.trials, plan.rungs, plan.eta, plan.step, contract)
    if wrong := first_mistake(twin, log):
        given = sum(
            name == "next_job" and type(job) is tuple and job[0] not in plan.poison
            for name, _, job in log[: wrong.call]
        )
        begun = sorted(map(TuningAttempt._make, attempts), key=lambda a: a.begun_s)
        run = TuningRun(begun[: max(given, 1)], plan.workers, deaths)
        picture = tasks(run, "Your run, up to its first mistake")
        found = f"Call {wrong.call}, {wrong.found}"
        raise Wrong(found, picture=picture, kind=wrong.kind)
    if twin.next_job() or len(twin.first) < plan.trials:
        raise Inconclusive("A run ended before all trials had: run this cell again.")


def _plan(step, *sizes):
    """Draw the losses and faults of a run; some losses are equal, some NaN."""
    plan = SimpleNamespace(step=step, seed=_random.getrandbits(32), faults=[])
    plan.least, plan.most, plan.eta, plan.trials, plan.workers = sizes
    plan.rungs = rung_steps(*sizes[:3])
    trials = range(plan.trials)
    values = [NAN] * (1 + plan.trials // 6) + [trial / 8 for trial in trials]
    plan.losses = [_random.choices(values, k=len(plan.rungs)) for _ in trials]
    plan.calls, plan.again, plan.poison = 100 + 60 * plan.trials, 0, set()
    if step > 1:
        plan.again, plan.poison = 0.3, {*_random.sample(trials, 2)}
        plan.faults = [*_drawn_faults(plan)]
    return plan


def _drawn_faults(plan):
    """Yield (True for a pause, worker, begin, end): several workers begin at once."""
    at_s = 0.0
    for _ in range(9):
        at_s, most_s = at_s + 1 + _random.uniform(0, plan.most / 2), 8 + plan.most / 2
        ends = [at_s + _random.uniform(1, most_s) for _ in range(plan.workers)]
        for worker, until_s in enumerate(ends):
            if _random.random() < 0.7:
                yield _random.random() < 0.5, worker, at_s, until_s
        at_s = max(ends)


def _table(yours):
    """Return the steps of each seed beside those of other schedulers, as text."""
    steps = _steps_of_others()
    rows = [("seed", "random search", "synchronous halving", "yours")]
    for seed, (*baselines, _), own in zip(SEEDS, steps, yours, strict=True):
        words = [f"{each:,.0f}" for each in (*baselines, own)]
        rows.append((str(seed), *words[:2], words[2].replace("inf", "none found")))
    drawn, halving, enough = zip(*steps, strict=True)
    lines = ["Steps trained by 8 workers until one of the 3 best losses of 256 trials:"]
    lines += aligned(rows, ">>>>")
    if math.inf in yours:
        return "\n".join([*lines, "Yours found none of them in at least one run."])
    if 0 in yours:
        return "\n".join([*lines, "Yours reported one without training a step."])
    said = f"Random search takes {_ratio(drawn, yours):.1f} times your steps, and "
    said += f"synchronous halving {_ratio(halving, yours):.2f} times (medians)."
    if (excess := _ratio(yours, enough)) > 1:
        said += f"\nOf your steps, {1 - 1 / excess:.0%} are not needed."
    return "\n".join([*lines, said])


@cache
def _steps_of_others():
    """Return the steps of random search, synchronous halving and ASHA, by seed."""
    rungs, found = rung_steps(1, 256, 4), []
    for seed in SEEDS:
        others = random_search(256, 256), SynchronousHalving(256, rungs, 4)
        both = *others, Asha(256, rungs, 4)
        found.append([_steps_to_loss(each, seed) for each in both])
    return found


def _ratio(some, others):
    return median(one / other for one, other in zip(some, others, strict=True))
