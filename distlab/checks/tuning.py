"""Exercise 18: ASHA's rung rule, deaths of its workers, and the steps that it trains.

    the learner's scheduler ◀── calls ── a simulated cluster, in a process: its log
    the expected scheduler  ◀── the log, call by call, up to the first difference

The expected one keeps no state but the log: it counts anew for each answer.
Source: Li et al. (2020, arXiv:1810.05934), algorithm 2.
"""

import math
import random
from collections import Counter
from functools import cache, partial
from statistics import median
from types import SimpleNamespace

from distlab.checks import kit
from distlab.checks.kit import Hint, Inconclusive, Wrong, called, check
from distlab.checks.kit.tables import excerpt
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
TRIES, SAVE_EVERY, RUNS, SEEDS = 3, 3, 10, range(5)
NAN = math.nan
_random = random.SystemRandom()
_CASE = "{} to {} steps, eta {}: {} trials, {} workers"


@check(_CASE)
def promotes(make, least, most, eta, trials, workers):
    """Check the rungs, the top of a rung, and every job of a run without faults."""
    _judge(make, 1, least, most, eta, trials, workers)


@check(f"{_CASE}; some die or pause")
def survives(make, least, most, eta, trials, workers):
    """Check the same with workers that die, late reports and duplicates."""
    _judge(make, 2, least, most, eta, trials, workers)


@check(f"{_CASE}; some die or pause, all save")
def saves_steps(make, least, most, eta, trials, workers):
    """Check that no step is trained twice that a checkpoint has."""
    _judge(make, 3, least, most, eta, trials, workers)


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
        try:
            said = called(getattr(self._scheduler, name), *args)
        except Exception as error:
            if type(error) is not NotImplementedError:  # a hint knows its words
                call = f"{name}({', '.join(map(repr, args))})"
                error.args = (f"{error}. Call {len(self.log) + 1} of this run: {call}",)
            raise
        if name == "on_report":
            said = self._scheduler.losses[args[1]].get(args[0])
        self.log.append((name, args, _plain(said)))
        return self.log[-1][2]

    def _can_run(self, job):
        if type(job) is not tuple or len(job) != 4:
            return False
        stop = dict(enumerate(self._plan.rungs)).get(job[1], -1)
        return job[0] in range(self._plan.trials) and 0 <= job[2] <= stop == job[3]


def _plain(said):
    """Return a job, a number or None as plain data, and words for others."""
    if isinstance(said, tuple) and all(type(part) is int for part in said):
        return tuple(said)
    return said if said is None or type(said) is bool else repr(said)[:80]


def _probe(make, rows, plans):
    """Return the answers to the rows; and of each run its log, attempts and deaths."""
    answers = [_answer(make, *row) for row in rows]
    return answers, [_logged(make, plan) for plan in plans]


def _answer(make, name, eta, asked):
    """Call a method in the state that follows from the losses of all rungs."""
    if name == "rung_steps":
        return [*called(make, 9, *asked, eta).rungs]
    scheduler = called(make, 9, 1, eta**2, eta)
    scheduler.losses = [dict(losses) for losses in asked]
    scheduler.promoted = [*map(set, asked[1:]), set()]
    scheduler.begun = len(asked[0])
    if name == "choose":
        return [_plain(called(scheduler.choose)) for _ in range(4)]
    found = called(scheduler.top, 0)
    return [*found] if isinstance(found, list | tuple) else repr(found)


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


# ---- what is expected ----------------------------------------------------------------


class _ExpectedScheduler:
    """The naive twin: what was reported, given out, lost and saved, and no more."""

    def __init__(self, trials, rungs, eta, step):
        self.trials, self.rungs, self.eta, self.step = trials, rungs, eta, step
        self.first, self.given, self.queue = {}, [], []
        self.tries, self.saves = Counter(), [(trial, 0) for trial in range(trials)]

    def next_job(self):
        self.queue = [job for job in self.queue if job not in self.first]
        new = len({trial for trial, _ in self.given}), 0
        jobs = [*self.queue[:1], *self.promotable(), *[new] * (new[0] < self.trials)]
        if not jobs:
            return None
        self.queue = self.queue[1:]
        self.given.append(jobs[0])
        return *jobs[0][:2], self.start_of(*jobs[0]), self.rungs[jobs[0][1]]

    def promotable(self):
        """Return (trial, rung above) of all that may be promoted, the first first."""
        found = []
        for rung in range(len(self.rungs) - 1):
            may = [(trial, rung + 1) for trial in self.top(self.losses(rung))]
            found = [job for job in may if job not in self.given] + found
        return found

    def losses(self, rung):
        return {trial: loss for (trial, at), loss in self.first.items() if at == rung}

    def top(self, losses):
        real = [(loss, trial) for trial, loss in losses.items() if loss == loss]
        return [trial for _, trial in sorted(real)[: len(losses) // self.eta]]

    def start_of(self, trial, rung):
        below = self.rungs[rung - 1] if rung else 0
        saves = [step for saved, step in self.saves if saved == trial]
        return max(below, *saves) if self.step > 2 else below

    def on_report(self, trial, rung, loss):
        return self.first.setdefault((trial, rung), loss)

    def on_saved(self, trial, step):
        self.saves.append((trial, step))

    def on_lost(self, trial, rung):
        job = trial, rung
        if job in self.first or job in self.queue:
            return
        self.tries[job] += 1
        if self.tries[job] == TRIES:
            self.first[job] = NAN
        else:
            self.queue.append(job)

    def wanted(self, trial, rung):
        return (trial, rung) not in self.first

    def mistake(self, job, right):
        """Return the kind of a wrong answer to `next_job`, for its hint."""
        if job is not None and (type(job) is not tuple or len(job) != 4):
            return "shape"
        own = job and job[:2]
        if own in self.first:
            return "given up" if self.tries[own] == TRIES else "reported"
        if right and own == right[:2]:
            return "start"
        if right and right[:2] in self.given[:-1]:
            return "lost first"
        if job is None:
            return "idle"
        if own in self.given:
            return "lost once" if self.tries[own] else "twice"
        if own[1] and own[0] not in self.top(self.losses(own[1] - 1)):
            return "not in the top"
        return "order" if right else "limit"


# ---- the comparison ------------------------------------------------------------------

# fmt: off
_ROWS = [
    *(("rung_steps", eta, sizes) for *sizes, eta in [
        (1, 9, 3), (1, 1000, 10), (1, 243, 3), (2, 100, 4), (5, 5, 2), (3, 10, 4)]),
    *(("top", eta, [losses, {}, {}]) for eta, losses in [
        (3, {0: 0.5, 1: 0.4, 2: 0.3}), (3, {0: 0.5, 1: 0.4}), (2, {}),
        (2, {4: 0.3, 2: 0.3, 7: 0.3, 1: 0.9}), (3, {6: 0.3, 8: 0.2, 1: 0.3, 0: 0.9}),
        (2, {0: NAN, 1: NAN, 2: 0.7, 3: NAN}), (2, {0: NAN, 1: 0.2, 2: NAN, 3: 0.1}),
        (2, {8: NAN, 5: 0.2, 4: NAN, 3: 0.1, 6: 0.4, 7: 0.3, 1: -1.0})]),
    *(("choose", eta, rungs) for eta, rungs in [
        (2, [{0: 0.4, 1: 0.1, 2: 0.3, 3: 0.2}, {0: 0.6, 1: 0.5}, {}]),
        (2, [{0: 0.9, 1: 0.8, 2: 0.2, 3: 0.1}, {}, {}]),
        (3, [{t: t / 10 for t in range(9)}, {0: 0.3, 1: 0.1, 2: 0.2}, {1: 0.5}])]),
]
# fmt: on


def _judge(make, step, *sizes):
    """Raise at the first answer in several runs that is not the expected one."""
    plans = [_plan(step, *sizes) for _ in range(RUNS)]
    answers, runs = kit.call(_probe, make, _ROWS, plans, without=WITHOUT)
    for (name, eta, asked), yours in zip(_ROWS, answers, strict=True):
        right, kind = _right(name, eta, asked, yours)
        if yours != right:
            found = f"{name}, eta {eta}, of {asked}:\n  expected  {right}"
            raise Wrong(f"{found}\n  yours     {yours}", kind=kind)
    for plan, run in zip(plans, runs, strict=True):
        _follow(make, plan, *run)


def _right(name, eta, asked, yours):
    """Return the right answer to a row, and the kind of mistake if yours differs."""
    if name == "rung_steps":
        return rung_steps(*asked, eta), name
    twin, right, kind = _ExpectedScheduler(9, [1, eta, eta**2], eta, 1), [], ""
    if name == "top":
        return twin.top(asked[0]), name
    rungs = enumerate(asked)
    twin.first = {(t, r): loss for r, losses in rungs for t, loss in losses.items()}
    twin.given = [*twin.first]
    for own in yours:
        job = twin.next_job()
        right.append(job and job[:2])
        if own != right[-1] and not kind:
            kind = twin.mistake((*own, 0, 0) if type(own) is tuple else own, job)
    return right, kind


def _follow(make, plan, log, attempts, deaths):
    """Raise at the first answer in a run that is not the expected one."""
    given, twin = 0, _ExpectedScheduler(plan.trials, plan.rungs, plan.eta, plan.step)
    for call, (name, args, yours) in enumerate(log, 1):
        lost = ", ".join(map(str, twin.queue)) or "none"
        right = getattr(twin, name)(*args)
        job = name == "next_job" and type(yours) is tuple
        given += job and yours[0] not in plan.poison
        if name in ("on_lost", "on_saved") or yours == _plain(right):
            continue
        kind = twin.mistake(yours, right) if name == "next_job" else name
        if name == "on_report" and yours == "nan":
            kind = "lost first"  # it was given up, though it should be done again
        asked = f"{'the loss after ' * (name == 'on_report')}{name}{args}"
        found = f"Call {call}, {asked}: expected {_words(right)}; yours is "
        found += f"{_words(yours)}.\n{_state(twin, lost)}"
        if kind in ("start", "wanted"):
            found += f"\n{_table(kit.call(_raced, make, without=WITHOUT))}"
        begun = sorted(map(TuningAttempt._make, attempts), key=lambda a: a.begun_s)
        run = TuningRun(begun[: max(given, 1)], plan.workers, deaths)
        picture = tasks(run, "Your run, up to its first mistake")
        raise Wrong(found, picture=picture, kind=kind)
    if twin.next_job() or len(twin.first) < plan.trials:
        raise Inconclusive("A run ended before all trials had: run this cell again.")


def _plan(step, *sizes):
    """Draw the losses and faults of a run; some losses are equal, some NaN."""
    plan = SimpleNamespace(step=step, seed=_random.getrandbits(32), faults=[])
    plan.least, plan.most, plan.eta, plan.trials, plan.workers = sizes
    plan.rungs = rung_steps(*sizes[:3])
    trials = range(plan.trials)
    values = [NAN] * (1 + plan.trials // 6) + [trial / 10 for trial in trials]
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


def _words(said):
    if type(said) is tuple and len(said) == 4:
        return "trial {}, rung {}, steps {} to {}".format(*said)
    return "no job" if said is None else said


def _state(twin, lost):
    """Return the reports of each rung as a table, the top 1/eta before a bar."""
    rows = [("rung", "steps", "reported (trial: loss), the top 1/eta before the bar")]
    for rung, steps in enumerate(twin.rungs):
        losses = twin.losses(rung)
        top = twin.top(losses)
        rest = sorted({*losses} - {*top}, key=lambda t: (losses[t] != losses[t], t))
        words = [f"{t}: {losses[t]:g}" for t in top]
        words = [*words, "|", *(f"{t}: {losses[t]:g}" for t in rest)]
        rows.append((str(rung), str(steps), excerpt(words, 0, 64)))
    if twin.step > 1:
        rows.append(("lost", "", lost))
    return "\n".join(aligned(rows, "<><"))


def _table(yours):
    """Return the steps of each seed beside those of other schedulers, as text."""
    steps = _steps_of_others()
    rows = [("seed", "random search", "synchronous halving", "yours")]
    for seed, (*baselines, _), own in zip(SEEDS, steps, yours, strict=True):
        rows.append((str(seed), *(f"{each:,.0f}" for each in (*baselines, own))))
    drawn, halving, enough = zip(*steps, strict=True)
    lines = ["Steps trained by 8 workers until one of the 3 best losses of 256 trials:"]
    lines += aligned(rows, ">>>>")
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


def _is(*kinds):
    return lambda f: f["kind"] in kinds


def _fails_in_next_job(facts):
    cause = facts["failure"].cause
    return type(cause) in (IndexError, TypeError) and "next_job()" in str(cause)


# fmt: off
HINTS = [
    Hint(_is("rung_steps"), [
        "Each rung has eta times the steps of the one below, and none has more than "
        "`most`. How many are there, counted in whole numbers?",
        "math.log(1000, 10) is 2.9999999999999996, and int() of it is 2. Multiply "
        "instead, as long as the next rung has at most `most` steps."]),
    Hint(_is("top"), [
        "Of n losses the best n // eta are the top: none of two, if eta is 3. Equal "
        "losses: the lower trial first. NaN counts among the n and is never in the "
        "top.",
        "NaN compares as False with everything, so that sorted() leaves it, and what "
        "is around it, anywhere. Sort by three things: is it NaN, the loss, the "
        "trial. Cut, and then drop NaN."]),
    Hint(lambda f: f["kind"] == "shape" if "kind" in f else _fails_in_next_job(f), [
        "`choose` returns (trial, rung) or None, and `next_job` makes the job of it: "
        "whole numbers, with a rung that there is.",
        "Call `choose()` on a new scheduler in a cell. Is what you get a tuple of two "
        "numbers? Which rung does a trial of the top rung go to?"]),
    Hint(_is("idle"), [
        "A worker is free and gets no job, though there is one: a trial that may be "
        "promoted, or a new one. ASHA waits for no rung to be complete.",
        "Read the table of the verdict from the top rung down: which trial before the "
        "bar was not promoted yet? If there is none, were all trials begun? Which "
        "line of `choose` returns None here?"]),
    Hint(_is("reported"), [
        "This job has reported already: its worker was taken for dead and was only "
        "slow. What is in `self.lost` may be done by now.",
        "Look at the moment at which you take a job from `self.lost`, and at the rung "
        "of that job: is the trial among its losses?"]),
    Hint(_is("given up"), [
        "This job was lost three times, and was given up: it may be what kills the "
        "workers. Its loss in this rung is NaN.",
        "Which number does `self.times_lost` have for this job at its third loss, and "
        "do you count before you compare, or after?"]),
    Hint(_is("twice"), [
        "This job was given out before, and was not lost. A trial is promoted once "
        "from each rung, and each new trial has a new number.",
        "Which line notes that a trial was promoted, and from which rung? A worker "
        "that trains it has reported nothing yet, so losses cannot tell."]),
    Hint(_is("not in the top"), [
        "The trial of your job is not in the top 1/eta of the rung below: it is "
        "behind the bar in the table of the verdict, or has not reported.",
        "Which rung's top do you take, and which loss of this trial is in it: the "
        "first that was reported for this rung, or a later one?"]),
    Hint(_is("limit"), [
        "All trials were begun. A free worker then gets a promotion or nothing.",
        "How many trials are there, and which number has the last one? Compare "
        "`self.begun` with `self.trials` before you begin one more."]),
    Hint(_is("lost first", "lost once"), [
        "A lost job goes first, in the order in which they were lost, and once: two "
        "messages about one loss are one loss, as long as the job waits.",
        "What does `choose` look at first, and which end of `self.lost` does it take? "
        "Is a job there at all after its first and its second loss, and how often?"]),
    Hint(_is("order"), [
        "There are several jobs, and this is not the first: the highest rung with a "
        "trial that may be promoted, its best such trial, and only then a new one.",
        "Write down for each rung, from the top down, who may be promoted. In which "
        "order does your loop look at the rungs?"]),
    Hint(_is("on_report"), [
        "A trial has one loss in a rung: the first that was reported, or NaN if it "
        "was given up. What comes later may be a copy, or of a second training.",
        "What is in `self.losses[rung]` before this call? Two jobs of one trial may "
        "report two losses, and a promotion may rest on the first one."]),
    Hint(_is("start"), [
        "The trial and rung are right; the job begins at another step. A trial goes "
        "on from its last checkpoint, and from the end of the rung below at least.",
        "A worker that was slow saves after the one that replaced it: the step of a "
        "checkpoint can be lower than that of the one before. Which one counts?"]),
    Hint(_is("wanted"), [
        "A worker asks whether its job should go on. It should, unless the rung has "
        "a loss of this trial.",
        "The verdict names trial and rung. Is the trial in `self.losses[rung]`, and "
        "what do you return then? A given-up job has a loss, too."]),
]
