"""Exercise 01: tasks done once, even loads, and the law by which a system scales.

The ranks' `work` queries this process, which records the rank and task and answers with
a random number. The system to fit is drawn at random, too.

Source: Graham (1969) for the limit of loads; Gunther (2007), chapter 4, for the law.
"""

import math
import reprlib
import string
from itertools import chain
from random import SystemRandom

from distlab.checks import kit
from distlab.checks.kit import Hint, Played, Wrong, check
from distlab.errors import Deadlock

LAWS = "distlab.cost", "distlab.cost.scaling"
WITHOUT = (*kit.modules_of("distlab.collectives"), *LAWS)
ALLOWED = 4 / 3  # times the load below which no assignment can get
EXACT, DISTURBED = (0.001, 0.01, 0.0001), (0.08, 0.2, 0.01)  # sigma, kappa, throughput
LEAST_KAPPA, SLOW = 1e-6, 0.9
CONTRACT = kit.Contract(
    root={
        "rank 0": "rank 0 returns the result of all",
        "last rank": "the last rank returns the result of all",
        "rank 1": "rank 1 returns the result of all, or rank 0 if it is alone",
    },
    operator={
        "sum": "the result of all tasks is the sum of theirs",
        "max": "the result of all tasks is the largest of theirs, 0 without a task",
    },
    workers={
        "peak": "the third number of fit_usl is the number of workers with the highest "
        "throughput",
        "half": "the third number of fit_usl is the largest number of workers of which "
        "each still does at least half of what one does alone",
    },
)
_random = SystemRandom()


@check('{} ranks, tasks "{}"')
def shared_work(function, n, tasks, contract=kit.PUBLISHED):
    """Check that each task is done once, not all by one rank, and rank 0's sum."""
    work = _Work(function, n, tasks, None, contract)
    if 1 < n <= len(tasks) and sum(map(bool, work.done)) == 1:
        raise work.wrong("One rank did all tasks.", alone=True)
    work.check_sum()


@check("{} ranks, tasks of {} s")
def balanced_work(function, n, sizes, contract=kit.PUBLISHED):
    """Check the same for known task sizes: even loads, and at most n - 1 messages."""
    work = _Work(function, n, string.ascii_lowercase[: len(sizes)], sizes, contract)
    loads = [sum(work.size_of[task] for task in own) for own in work.done]
    allowed = ALLOWED * max(sum(sizes) / n, *sizes, 0)
    if max(loads) > allowed * (1 + 1e-9):
        found = f"The largest load is {max(loads):g} s, expected at most {allowed:.3g}."
        raise work.wrong(found, "load", loads, loads=loads)
    work.check_sum()
    sent = [work.trace.messages_sent(rank) for rank in range(n)]
    if sum(sent) > n - 1:
        raise work.wrong(f"{n - 1} messages are enough.", "messages", sent, sent=sent)


class _Work:
    """A run on tasks; done: each rank's tasks. Raises if one was not done once."""

    def __init__(self, function, n, tasks, sizes, contract):
        self.contract = contract
        most = 2**24 // max(1, len(tasks))  # a float32 holds any sum
        self.results = {task: _random.randint(1, most) for task in tasks}
        self.tasks, self.done = tasks, [[] for _ in range(n)]
        self.size_of = dict(zip(tasks, sizes or (), strict=False))
        how = {"args": (tasks, sizes), "answers": self._answer}
        report = kit.on_ranks(_probe, function, range(n), **how, without=WITHOUT)
        self.trace, self.returned = report.trace, report.results
        wanted, done = sorted(tasks), sorted(chain(*self.done))
        if done != wanted:
            found = f"expected {' '.join(wanted)}\nyours    {' '.join(done)}"
            alone = n > 1 and all(sorted(own) == wanted for own in self.done)
            raise self.wrong(found, alone=alone, tasks=True, sized=bool(sizes), n=n)

    def _answer(self, rank, task, step):
        self.done[rank].append(task)
        return self.results[task]

    def check_sum(self):
        """Raise if the root, rank 0, has not returned the sum, or what is asked."""
        results, n = [*map(self.results.get, self.tasks)], len(self.done)
        roots = {"last rank": n - 1, "rank 1": 1 % n}
        root, said = roots.get(self.contract.get("root"), 0), "sum"
        right, yours = sum(results), self.returned[root]
        if self.contract.get("operator") == "max":
            right, said = max(results, default=0), "largest"
        if yours != right:
            found = f"Rank {root}: expected {right}, the {said} of all results, "
            found += f"yours {yours}."
            silent = len(self.done) > 1 and not self.trace.messages()
            raise self.wrong(found, silent=silent, sum=not silent)

    def wrong(self, found, title="", column=(), **facts):
        """Return `Wrong` with a row per rank: the tasks it did, and one more column."""
        lines = [f"rank  {title:13}  tasks done"]
        for rank, own in enumerate(self.done):
            sized = (f"{t}:{self.size_of[t]:g}" if self.size_of else t for t in own)
            more = column[rank] if column else ""
            lines.append(f"{rank:>4}  {more:<13}  {' '.join(sized) or '-'}")
        picture = None if "loads" in facts else Played(self.trace, "Your run")
        return Wrong("\n".join([*lines, found]), picture=picture, **facts)


class _HashedTask(str):
    """A task whose hash differs from rank to rank, as that of a string may."""

    salt = 0

    def __hash__(self):
        return hash((self.salt, str(self)))


def _probe(comm, function, tasks, sizes, rank):
    def work(task):
        if task not in [*tasks]:
            raise ValueError(f"work({task!r}): this is not one of the tasks")
        return comm.ask(str(task))

    _HashedTask.salt = comm.rank
    more = [] if sizes is None else [lambda task: sizes[tasks.index(task)]]
    return _plain(kit.called(function, comm, [*map(_HashedTask, tasks)], work, *more))


def _plain(value):
    """Return a number of Python, numpy or torch as Python's own; words for others."""
    try:
        number = value.item() if hasattr(value, "item") else value
    except (ValueError, RuntimeError):  # an array
        number = None
    return number if isinstance(number, int | float) else reprlib.repr(value)


@check("{} to {} workers, peak near {}, {}")
def fit_usl(function, first, most, near, runs, contract=kit.PUBLISHED):
    """Check sigma, kappa and the peak of a system; runs: exact, or with one slow."""
    law, measured = draw_system(first, most, near, runs)
    yours = kit.call(_law_probe, function, measured, without=WITHOUT)
    if type(yours) is str or str in map(type, yours):
        raise Wrong(f"It returned {yours}, not three numbers: sigma, kappa, peak.")
    within = EXACT if runs == "exact" else DISTURBED
    fits, high = compare(yours, law, within)
    best, third = best_count(*law[1:]), "peak"
    if contract.get("workers") == "half":
        best, third = half_as_good(*law[1:]), "workers"
        own = fits and runs != "exact"
        meant = half_as_good(*map(float, yours[:2])) if own else best
        high = yours[2] == meant  # of a disturbed run, that of the fit
        high = (
            high or min(abs(_worth(n, *law[1:]) - 0.5) for n in (best, best + 1)) < 1e-3
        )
    if not (fits and high):
        rows = ("expected", *law[1:], best), ("yours", *yours)
        line = "{:>8}: sigma {:.4g}, kappa {:.4g}, " + third + " {:.4g}"
        found = "\n".join(line.format(*row) for row in rows)
        times = (yours[0] * law[0], yours[1] * law[0], yours[2])
        facts = {"fits": fits, "undivided": compare(times, law, within)[0]}
        raise Wrong(found, yours=yours, law=law, **facts)


def draw_system(first, most, near, runs):
    """Return the law of a system, rate, sigma and kappa, and measurements of it."""
    sigma, peak = _random.uniform(0.08, 0.2), near * _random.uniform(0.99, 1.01)
    law = _random.uniform(5, 500), sigma, (1 - sigma) / peak**2
    measured = [(n, throughput(n, *law)) for n in range(first, most + 1)]
    if runs != "exact":
        measured = [(n, x * _random.uniform(0.998, 1.002)) for n, x in measured]
        slow = _random.randrange(len(measured)) if runs == "one run slow" else -1
        measured[slow] = measured[slow][0], measured[slow][1] * SLOW
    return law, measured


def compare(yours, law, within):
    """Return (True if sigma and kappa are near, True if the peak's throughput is)."""
    (sigma, kappa, n), best = yours, best_count(*law[1:])
    fits = abs(sigma - law[1]) <= within[0]
    fits = fits and abs(kappa - law[2]) <= max(within[1] * law[2], LEAST_KAPPA)
    if not 1 <= n < 1e9 or n % 1 or best == math.inf:
        return fits, n == best
    return fits, throughput(n, *law) >= (1 - within[2]) * throughput(best, *law)


def throughput(n, rate, sigma, kappa):
    """Return jobs per second on n workers; `rate` is that of one."""
    return rate * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def best_count(sigma, kappa):
    """Return the number of workers with the highest throughput, or math.inf."""
    if kappa < LEAST_KAPPA:
        return math.inf
    peak = math.sqrt((1 - sigma) / kappa)
    beside = max(1, math.floor(peak)), math.ceil(peak)
    return max(beside, key=lambda n: throughput(n, 1, sigma, kappa))


def half_as_good(sigma, kappa):
    """Return the largest number of workers that each do half of what one does alone."""
    n = 1
    while _worth(n + 1, sigma, kappa) >= 0.5:
        n += 1
    return n


def _worth(n, sigma, kappa):
    return throughput(n, 1, sigma, kappa) / n


def _law_probe(function, measured):
    returned = kit.called(function, measured)
    three = isinstance(returned, tuple | list) and len(returned) == 3
    return [*map(_plain, returned)] if three else _plain(returned)


# fmt: off
HINTS = [
    Hint(lambda f: f["alone"], [
        "The work is not shared: one rank does everything, or every rank does. Which "
        "tasks are those of rank r alone?",
        "Look at the loop over tasks. Give each place in the list to one rank, by "
        "the place's remainder for example; two equal tasks have different places."]),
    Hint(lambda f: f["tasks"] and f["n"] == 1, [
        "With one rank there is no other: rank 0 does every task itself.",
        "Do the case by hand with comm.rank 0 and comm.world_size 1. Which loop over "
        "other ranks is empty, and which tasks does the rest of your function leave "
        "out?"]),
    Hint(lambda f: f["tasks"] and f["sized"], [
        "Some tasks are lost or done twice. Do all ranks work out the same assignment? "
        "What a rank draws at random, or takes from a set, another one need not.",
        "Look at the order in which you go through tasks of equal size, and for "
        "set(), hash() and random. Sort by size_of alone, and give each task to the "
        "lowest rank with the least load."]),
    Hint(lambda f: f["tasks"], [
        "Some tasks are lost or done twice. Write down for each rank which places of "
        "the list it takes: is every place there, and once?",
        "11 tasks, 4 ranks: two for each make 8. Who does the remainder? Equal tasks "
        "are still two, and a task's hash may differ between ranks: go by its place."]),
    Hint(lambda f: f["sum"], [
        "Every task was done, but rank 0 does not return the sum of all results. What "
        "happens there to each message that arrives?",
        "Look at rank 0 after its own tasks: how many receives does it make, and "
        "does each result go into the sum? Then see what the others send: the "
        "number, or a list?"]),
    Hint(lambda f: isinstance(f["failure"], Deadlock) and not f["failure"].cycle, [
        "Sends and receives do not pair up. Does every rank send as often as rank 0 "
        "receives from it, also a rank that has no task?",
        "For each rank count the sends, and on rank 0 the receives from it. A rank "
        "without tasks sends the sum of nothing, 0; or rank 0 must know that it "
        "sends nothing."]),
    Hint(lambda f: f["loads"], [
        "Keep for every rank the load that it has so far. Which task do you place "
        "first, and on which rank?",
        "Loads 4 and 4, and a task of 6 is left: whoever takes it has 10. Begin again "
        "with the 6. Where do the others go?"]),
    Hint(lambda f: f["sent"], [
        "Every rank can work out the assignment by itself, so only results have to "
        "travel, and rank 0 needs their sum. What can a rank do before it sends?",
        "Look for a send inside of a loop over tasks, and for a message that carries "
        "a task. A rank can add up its own results first: one message of one number."]),
    Hint(lambda f: f["undivided"], [
        "Least squares gives $1/λ$, $σ/λ$ and $κ/λ$. What is sigma?",
        "Take the three numbers that lstsq returns. The first is $1/λ$; divide "
        "the other two by it."]),
    Hint(lambda f: f["law"][-1] < LEAST_KAPPA, [
        "A kappa below 1e-6 counts as 0: the throughput never falls, and the peak is "
        "math.inf. Measured numbers seldom give exactly 0.",
        "Look at the place where you compare kappa. A comparison with 0 misses a fit "
        "of 1e-9; the test has to stand before the root is taken."]),
    Hint(lambda f: f["fits"], [
        "Sigma and kappa are right. The peak follows from them alone, in whole "
        "workers: compare the throughput on both sides of the root.",
        "The root is a real number, the square root of $(1 - σ)/κ$. Put its floor and "
        "its ceiling into the law, and take the one with more throughput; no fewer "
        "than 1 worker."]),
    Hint(lambda f: f["yours"], [
        "The law has three unknowns, and lambda is one: the first measurement need not "
        "be that of one worker. Do all of the points take part in your fit, and all "
        "three terms? Sigma alone is Amdahl's law, which has no peak.",
        "$n/X(n)$ is a sum of three terms, each an unknown times something that you "
        "know: 1, $n-1$ and $n(n-1)$."]),
]
