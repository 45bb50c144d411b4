"""The rules of ASHA in exercise 18: the expected answers, kinds of mistakes, hints.

A log is a list of (method, arguments, answer); the answer is plain data, see `plain`.
"""

import math
import re
from collections import Counter
from types import SimpleNamespace

from distlab.checks.kit import PUBLISHED, Hint
from distlab.checks.kit.tables import excerpt
from distlab.show.table import aligned

TRIES, NAN = 3, math.nan


def plain(said):
    """Return a job, a number or None as plain data, and words for others."""
    if isinstance(said, tuple):
        whole = int, type(None)
        return tuple(p if type(p) in whole else repr(p)[:80] for p in said)
    return said if said is None or type(said) is bool else repr(said)[:80]


class ExpectedScheduler:
    """The naive twin: what was reported, given out, lost and saved, and no more."""

    def __init__(self, trials, rungs, eta, step, contract=PUBLISHED):
        self.trials, self.rungs, self.eta, self.step = trials, rungs, eta, step
        self.contract = contract
        self.first, self.given, self.queue = {}, [], []
        self.tries, self.saves = Counter(), [(trial, 0) for trial in range(trials)]

    def next_job(self):
        """Return the next job as (trial, rung, start, stop), or None."""
        self.queue = [job for job in self.queue if job not in self.first]
        new = len({trial for trial, _ in self.given}), 0
        newest = len(self.queue) > 1 and self.contract.get("lost") == "newest"
        lost = self.queue[-1:] if newest else self.queue[:1]
        jobs = [*lost, *self.promotable(), *[new] * (new[0] < self.trials)]
        if not jobs:
            return None
        self.queue = [job for job in self.queue if job not in lost]
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
        """Return trial -> loss of a rung."""
        return {trial: loss for (trial, at), loss in self.first.items() if at == rung}

    def top(self, losses):
        """Return the trials in the top 1/eta of these losses, the best first."""
        way = -1 if self.contract.get("ties") == "higher" else 1
        real = [(loss, way * trial) for trial, loss in losses.items() if loss == loss]
        count = len(real if self.contract.get("nan") == "left out" else losses)
        up = self.eta - 1 if self.contract.get("top") == "up" else 0
        return [way * trial for _, trial in sorted(real)[: (count + up) // self.eta]]

    def start_of(self, trial, rung):
        """Return the step at which a job begins."""
        below = self.rungs[rung - 1] if rung else 0
        saves = [step for saved, step in self.saves if saved == trial]
        return max(below, *saves) if self.step > 2 else below

    def on_report(self, trial, rung, loss):
        """Return the loss that counts, which is the first."""
        return self.first.setdefault((trial, rung), loss)

    def on_saved(self, trial, step):
        """Note a checkpoint."""
        self.saves.append((trial, step))

    def on_lost(self, trial, rung):
        """Return the loss of the job, and how often it was put into `lost`."""
        job = trial, rung
        known = job in self.first or job in self.queue
        self.tries[job] += not known
        if not known and self.tries[job] == TRIES:
            self.first[job] = NAN
        elif not known:
            self.queue.append(job)
            return self.first.get(job), 1
        return self.first.get(job), 0

    def wanted(self, trial, rung):
        """Return True if the rung has no loss of this trial."""
        return (trial, rung) not in self.first

    def mistake(self, name, yours, right):
        """Return the kind of a wrong answer, for its hint."""
        if name == "next_job":
            return self._wrong_job(yours, right)
        if name == "on_lost":
            return _wrong_loss(yours, right)
        return "note" if name == "on_report" and self.step == 1 else name

    def _wrong_job(self, job, right):
        if job is None:
            return "idle"
        if type(job) is not tuple or len(job) != 4 or {*map(type, job[:2])} != {int}:
            return "shape"
        own = job[:2]
        if right and own == right[:2]:
            return "start" if type(job[2]) is int else "no start"
        if own in self.first and self.step > 1:
            return "given up" if self.tries[own] == TRIES else "reported"
        if right and right[:2] in self.given[:-1]:
            return "lost first"
        if own in self.given and (right or own[1] or self.tries[own]):
            if right and right[:2] == (own[0], own[1] + 1):
                return "same rung"
            return "lost once" if self.tries[own] else "twice"
        return self._wrong_choice(own, right)

    def _wrong_choice(self, own, right):
        """Return the kind of a wrong promotion, or of a wrong new trial."""
        if own[1] and own[0] not in self.top(self.losses(own[1] - 1)):
            return "not in the top"
        if not right:
            return "limit"
        if not own[1]:
            return "promotion" if right[1] else "number"
        return "best" if own[1] == right[1] else "order"


def _wrong_loss(yours, right):
    """Return the kind of a wrong loss, or of wrong `lost` jobs, after `on_lost`."""
    if right[0] == "nan" and yours[0] is None:
        return "given up"
    if right[0]:
        return "has a loss"
    return "too early" if yours[0] else "lost once"


def first_mistake(twin, log):
    """Return the first wrong answer of a log, or None; `twin` has taken part in it."""
    for call, (name, args, yours) in enumerate(log, 1):
        if name == "unwritten":
            return None
        lost = _jobs(twin.queue)
        right = plain(getattr(twin, name)(*args))
        if name != "next_job":  # which takes the first
            lost = _jobs(twin.queue)
        if name != "on_saved" and yours != right:
            kind = twin.mistake(name, yours, right)
            right, yours = _in_words(name, right), _in_words(name, yours)
            found = f"{_ASKED.get(name, '')}{name}{args}: expected {right}; "
            found += f"yours is {yours}.\n{state_table(twin, lost)}"
            return SimpleNamespace(call=call, found=found, kind=kind)
    return None


_ASKED = {
    "on_report": "the loss after ",
    "on_lost": "the loss, and what is new in `lost`, after ",
}


def _jobs(jobs):
    return ", ".join(map(str, jobs)) or "none"


def _in_words(name, said):
    if name == "on_lost":
        return f"{said[0] or 'no loss'}, and {said[1]} more in `lost`"
    if name != "next_job":
        return said
    if type(said) is tuple and len(said) == 4:
        return "trial {}, rung {}, steps {} to {}".format(*said)
    return "no job" if said is None else said


def state_table(twin, lost):
    """Return, as a table, what a scheduler should know: reports and lost jobs."""
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
    return "\n".join(["What the scheduler should know now:", *aligned(rows, "<><")])


def _is(*kinds):
    return lambda f: f["kind"] in kinds


def _fails_in_next_job(facts):
    cause = facts["failure"].cause
    in_next_job = re.search(r"Call \d+: next_job\(\)", str(cause))
    return type(cause) in (IndexError, TypeError) and in_next_job


# fmt: off
HINTS = [
    Hint(_is("unwritten"), [
        "What the check called before is right. What does the table of this step say "
        "of the method, and what has to come out in the smallest case?",
        "Take the example of this step, and write down what each attribute holds "
        "before and after the call of this method."]),
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
    Hint(_is("same rung"), [
        "This trial has been in that rung; a promotion goes to the rung above.",
        "The trial is in the top of `rung`: for which rung is its next job?"]),
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
        "This job was given out before. A trial is promoted once from each rung, and "
        "each new trial has a new number.",
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
        "Is a job there, as (trial, rung), after its first and its second loss, and "
        "how often?"]),
    Hint(_is("too early"), [
        "A job is given up when it is lost for the third time. Its worker may only be "
        "slow, and its first two losses put it into `self.lost`.",
        "Which number does `self.times_lost` have for this job at its first loss?"]),
    Hint(_is("has a loss"), [
        "The rung has a loss of this trial: the job is done, or given up, and losing "
        "its worker changes nothing any more.",
        "The first line of `on_lost` decides whether there is anything to do. Which "
        "two places can tell that there is nothing?"]),
    Hint(_is("order"), [
        "Several trials may be promoted, and this is not the first: the highest rung "
        "goes first.",
        "Write down for each rung, from the top down, who may be promoted. In which "
        "order does your loop look at the rungs?"]),
    Hint(_is("best"), [
        "Several trials of this rung may be promoted, and this is not the first: the "
        "best one goes first, and of equal ones the lower trial.",
        "In which order does `top` return them, and does `choose` keep that order?"]),
    Hint(_is("promotion"), [
        "A promotion was due, and a new trial began. New trials begin only where no "
        "trial may be promoted.",
        "The table of the verdict has the trial before the bar of its rung. What does "
        "`top` return for that rung, and is the trial in `self.promoted` of it?"]),
    Hint(_is("number"), [
        "The number of the new trial is wrong: they begin as 0, 1, 2, and so on.",
        "Which number has `self.begun` before the first trial, and do you return it "
        "before you add 1, or after?"]),
    Hint(_is("note"), [
        "`on_report` notes the loss of this trial in this rung, as it is.",
        "What is in `self.losses[rung]` after the call? Is it the same number?"]),
    Hint(_is("on_report"), [
        "A trial has one loss in a rung: the first that was reported, or NaN if it "
        "was given up. What comes later may be a copy, or of a second training.",
        "What is in `self.losses[rung]` before this call? Two jobs of one trial may "
        "report two losses, and a promotion may rest on the first one."]),
    Hint(_is("no start"), [
        "`start_of` returns the step at which a job begins, a whole number, for each "
        "trial and rung.",
        "Call `start_of(0, 0)` on a new scheduler in a cell. Does each way through the "
        "method end with a return, and what does it give without a checkpoint?"]),
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
