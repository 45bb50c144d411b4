"""Exercise 01: tasks done once, even loads, and the law by which a system scales.

    rank 0  work(a) work(e)  ◀─────── sum of b, f ───────  rank 1  work(b) work(f)

The ranks' `work` asks this process, which notes who does what and answers with a number
drawn at random. The system to fit is drawn at random, too.

Source: Graham (1969) for the limit of loads; Gunther (2007), chapter 4, for the law.
"""

import math
import reprlib
import string
from collections import Counter
from itertools import chain
from random import SystemRandom

from distlab.checks import kit
from distlab.checks.kit import Hint, Played, Wrong, check
from distlab.errors import Deadlock

LAWS = "distlab.cost", "distlab.cost.scaling"
WITHOUT = (*kit.modules_of("distlab.collectives"), *LAWS)
ALLOWED = 4 / 3  # times the load below which no assignment can get
EXACT, DISTURBED = (0.001, 0.01, 0.0001), (0.08, 0.2, 0.01)  # sigma, kappa, throughput
_random = SystemRandom()


@check('{} ranks, tasks "{}"')
def shared_work(function, n, tasks):
    """Each task is done once, not all by one rank; rank 0 returns the sum."""
    work = _Work(function, n, tasks)
    if 1 < n <= len(tasks) and sum(map(bool, work.done)) == 1:
        raise work.wrong("One rank did all tasks.", alone=True)
    work.check_sum()


@check("{} ranks, tasks of {} s")
def balanced_work(function, n, sizes):
    """The same for tasks of known sizes: even loads, and at most n - 1 messages."""
    work = _Work(function, n, string.ascii_lowercase[: len(sizes)], sizes)
    loads = [sum(work.size_of[task] for task in own) for own in work.done]
    allowed = ALLOWED * max(sum(sizes) / n, *sizes, 0)
    if max(loads) > allowed * (1 + 1e-9):
        found = f"The largest load is {max(loads):g} s, expected at most {allowed:.3g}."
        alone = n > 1 and loads.count(0) == n - 1
        raise work.wrong(found, "load", loads, alone=alone, loads=loads)
    work.check_sum()
    sent = [work.trace.messages_sent(rank) for rank in range(n)]
    if sum(sent) > n - 1:
        found = f"Of {sum(sent)} messages, {n - 1} are enough."
        raise work.wrong(found, "messages sent", sent, sent=sent)


class _Work:
    """A run on tasks: who did which, `done`; raises if one was not done once."""

    def __init__(self, function, n, tasks, sizes=None):
        most = 2**24 // max(1, len(tasks))  # a float32 holds any sum
        self.results = {task: _random.randint(1, most) for task in tasks}
        self.tasks, self.done = tasks, [[] for _ in range(n)]
        self.size_of = dict(zip(tasks, sizes or (), strict=False))
        how = {"args": (list(tasks), sizes), "answers": self._answer}
        report = kit.on_ranks(_probe, function, range(n), **how, without=WITHOUT)
        self.trace, self.returned = report.trace, report.results
        wanted, times = Counter(tasks), Counter(chain(*self.done))
        often, never = ([*c.elements()] for c in (times - wanted, wanted - times))
        if often or never:
            found = f"Done too often: {' '.join(often)}\n" * bool(often)
            found += f"Not done: {' '.join(never)}" * bool(never)
            alone = n > 1 and all(Counter(own) == wanted for own in self.done)
            raise self.wrong(found.strip(), alone=alone, tasks=True)

    def _answer(self, rank, task, step):
        self.done[rank].append(task)
        return self.results[task]

    def check_sum(self):
        """Raise if rank 0 has not returned the sum."""
        right, (number, shown) = (
            sum(map(self.results.get, self.tasks)),
            self.returned[0],
        )
        if number != right:
            found = f"Rank 0: expected {right}, the sum of all results, yours {shown}."
            silent = len(self.done) > 1 and not self.trace.messages()
            raise self.wrong(found, silent=silent, sum=not silent)

    def wrong(self, found, title="", column=(), **facts):
        """Return `Wrong` with a row per rank: the tasks it did, and one more column."""
        named = {task: f"{task}:{size:g}" for task, size in self.size_of.items()}
        sized = [" ".join(named.get(t, t) for t in own) or "-" for own in self.done]
        wide = max(map(len, ["tasks done", *sized]))
        rows = zip(sized, [*column] or [""] * len(sized), strict=True)
        lines = [f"rank  {'tasks done':{wide}}  {title}"]
        lines += [f"{r:>4}  {own:{wide}}  {more}" for r, (own, more) in enumerate(rows)]
        text = "\n".join([*map(str.rstrip, lines), found])
        return Wrong(text, picture=Played(self.trace, "Your run"), **facts)


def _probe(comm, function, tasks, sizes, rank):
    def work(task):
        if task not in tasks:
            raise ValueError(f"work({task!r}): this is not one of the tasks")
        return comm.ask(task)

    more = [] if sizes is None else [dict(zip(tasks, sizes, strict=True)).__getitem__]
    return _plain(kit.called(function, comm, list(tasks), work, *more))


def _plain(value):
    """Return a number of Python, numpy or torch as Python's own, or None; and words."""
    try:
        number = value.item() if hasattr(value, "item") else value
    except (ValueError, RuntimeError):  # an array
        number = None
    shown = " ".join(reprlib.repr(value).split())
    return number if isinstance(number, int | float) else None, shown


@check("{} to {} workers, peak near {}, last run {} % slow")
def fit_usl(function, first, most, near, slow):
    """Sigma, kappa and the peak of a system, from measurements of it."""
    law, measured = draw_system(first, most, near, slow)
    yours, shown = kit.call(_law_probe, function, measured, without=WITHOUT)
    if None in yours:
        raise Wrong(f"It returned {shown}, not three numbers: sigma, kappa, peak.")
    fits, high = compare(yours, law, DISTURBED if slow else EXACT)
    if not (fits and high):
        best = best_count(*law[1:])
        found = "".join(f"{word:>11}" for word in ("", "sigma", "kappa", "peak"))
        for name, row in ("expected", (*law[1:], best)), ("yours", yours):
            found += f"\n{name:>11}" + "".join(f"{value:11.4g}" for value in row)
        raise Wrong(found, fits=fits, yours=yours, law=law)


def draw_system(first, most, near, slow):
    """Return the law of a system, rate, sigma and kappa, and measurements of it."""
    sigma, peak = _random.uniform(0.02, 0.15), near * _random.uniform(0.99, 1.01)
    law = _random.uniform(5, 500), sigma, (1 - sigma) / peak**2
    measured = [(n, throughput(n, *law)) for n in range(first, most + 1)]
    if slow:
        measured = [(n, x * _random.uniform(0.998, 1.002)) for n, x in measured]
        measured[-1] = most, measured[-1][1] * (1 - slow / 100)
    return law, measured


def compare(yours, law, within):
    """Return whether sigma and kappa are near, and the throughput at the peak."""
    (sigma, kappa, n), best = yours, best_count(*law[1:])
    fits = abs(sigma - law[1]) <= within[0]
    fits = fits and abs(kappa - law[2]) <= max(within[1] * law[2], 1e-6)
    if not 1 <= n < 1e9 or n % 1 or best == math.inf:
        return fits, n == best
    return fits, throughput(n, *law) >= (1 - within[2]) * throughput(best, *law)


def throughput(n, rate, sigma, kappa):
    """Return jobs per second on n workers; `rate` is that of one."""
    return rate * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def best_count(sigma, kappa):
    """Return the number of workers with the highest throughput, or math.inf."""
    if kappa == 0:
        return math.inf
    peak = math.sqrt((1 - sigma) / kappa)
    beside = max(1, math.floor(peak)), math.ceil(peak)
    return max(beside, key=lambda n: throughput(n, 1, sigma, kappa))


def _law_probe(function, measured):
    returned = kit.called(function, measured)
    three = isinstance(returned, tuple | list) and len(returned) == 3
    return [_plain(v)[0] for v in returned] if three else [None], _plain(returned)[1]


# fmt: off
HINTS = [
    Hint(lambda f: f["alone"], [
        "The work is not shared: one rank does everything, or every rank does. Which "
        "tasks are those of rank r alone?",
        "Eight tasks, four ranks: write down who does which, so that each is there "
        "once. Which rule, that needs only comm.rank, does rank 3 need?"]),
    Hint(lambda f: f["tasks"], [
        "Some tasks are lost or done twice. Write down for each rank which places of "
        "the list it takes: is every place there, and once?",
        "11 tasks, 4 ranks: two for each make 8. Who does the remainder? Tasks that "
        "are equal are still two: what tells them apart is their place.",
        "If two ranks have the same load, who gets the next task, and do all ranks "
        "say so? If rank 0 only collects, who works in a world of one rank?"]),
    Hint(lambda f: f["sum"], [
        "Every task was done, but rank 0 does not return the sum of all results. What "
        "happens there to each message that arrives?",
        "Everything that arrives has to be added, once, to rank 0's own results. Does "
        "an assignment replace them, and does the last line return one number?"]),
    Hint(lambda f: isinstance(f["failure"], Deadlock) and not f["failure"].cycle, [
        "Sends and receives do not pair up. Does every rank send as often as rank 0 "
        "receives from it, also a rank that has no task?",
        "The story says who waits for whom. Go through your function as the other of "
        "the two: where does it leave without a send, or a receive?"]),
    Hint(lambda f: f["loads"], [
        "Keep for every rank the load that it has so far. Which task do you place "
        "first, and on which rank?",
        "See the sizes in the row with the largest load. When the last of them was "
        "placed, which rank had least?",
        "Loads 4 and 4, and a task of 6 is left: whoever takes it has 10. Begin again "
        "with the 6. Where do the others go?"]),
    Hint(lambda f: f["sent"], [
        "Every rank can work out the assignment by itself, so only results have to "
        "travel, and rank 0 needs their sum. What can a rank do before it sends?"]),
    Hint(lambda f: f["law"][-1] == 0 if "law" in f else any(
         word in str(f["failure"].cause) for word in ("domain", "NaN", "float div")), [
        "With kappa = 0 the throughput never falls: there is no peak, and math.inf "
        "stands for it.",
        "A fit leaves rounding errors: kappa comes out as 1e-17 or -1e-17 where it is "
        "0. Below which size does it count as 0?"]),
    Hint(lambda f: f["fits"], [
        "Sigma and kappa are right. The peak follows from them alone, in whole "
        "workers: compare the throughput on both sides of the root.",
        "The best of the measurements need not be the peak, and the nearest whole "
        "number is not always the best, nor can it be 0."]),
    Hint(lambda f: f["yours"], [
        "The law has three unknowns, lambda among them, and no measurement is exact. "
        "Do all of the points take part in your fit, and all three terms? Sigma alone "
        "is Amdahl's law, which has no peak.",
        "A curve through three points, or a division by the first throughput, follows "
        "the errors of those points. Least squares weighs all.",
        "n / X(n) is a sum of three terms, each an unknown times something that you "
        "know: 1, n - 1 and n (n - 1)."]),
]
