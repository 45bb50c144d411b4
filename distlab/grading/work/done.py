"""Who did which tasks: the counts, sums and loads that a check of shared work reads.

`done` is a list per rank of the tasks that it did, in its own order, everywhere. Each
result is more than three times the sum of those before it, so that a sum tells which
results are in it, up to three times each; beyond that they are drawn.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable

from distlab.grading.salt import salted

__all__ = [
    "alike",
    "dealt",
    "in_a_row",
    "in_words",
    "miscounts_told",
    "most_even",
    "parts_in",
    "results_in",
    "results_of",
    "surplus",
    "to_the_least_loaded",
    "undone",
]

_BASE = 4
_MOST = 2**24
_MOST_TIMES = 2


def results_of(tasks: list) -> dict:
    """Return task -> its result; tasks that are equal have one result.

    All together they are below 2**24, so that a float32 holds any sum of them.
    """
    names = list(dict.fromkeys(tasks))
    draw, results, total = salted("work", *names), {}, 0
    for left, task in enumerate(reversed(names), 1 - len(names)):
        most = _MOST // _BASE**-left - 1 - total
        results[task] = draw.randint((_BASE - 1) * total + 1, most)
        total += results[task]
    return {task: results[task] for task in names}


def surplus(tasks: list, done: list[list]) -> dict:
    """Return task -> the ranks that did it, for each that was done too often."""
    wanted, times = Counter(tasks), Counter(itertools.chain(*done))
    return {
        task: [rank for rank, own in enumerate(done) for _ in range(own.count(task))]
        for task in wanted
        if times[task] > wanted[task]
    }


def undone(tasks: list, done: list[list]) -> list:
    """Return the tasks that nobody did, in order of the list, each once."""
    times = Counter(itertools.chain(*done))
    return [task for task, wanted in Counter(tasks).items() if times[task] < wanted]


def parts_in(total: float, parts: list[float]) -> tuple[int, ...] | None:
    """Return how often each rank's part is in `total`; None if it is no such sum.

    Of several answers it is one with as many ones as there can be.
    """
    fits = (
        times
        for times in itertools.product(range(_MOST_TIMES + 1), repeat=len(parts))
        if sum(map(int.__mul__, times, parts)) == total
    )
    return max(fits, key=lambda times: times.count(1), default=None)


def results_in(total: float, tasks: list) -> dict | None:
    """Return task -> how often its result is in `total`.

    None if that explains nothing: `total` is no whole number, or most are missing.
    """
    if not math.isfinite(total):
        return None
    times, left = {}, total
    for task, result in results_of(tasks).items():
        times[task] = min(left // result, _BASE - 1)
        left -= times[task] * result
    missing = [task for task, count in times.items() if not count]
    whole = not left and min(times.values(), default=0) >= 0
    return times if whole and 2 * len(missing) <= len(times) else None


def most_even(sizes: list[float], world_size: int) -> float:
    """Return a load below which the busiest rank cannot get, whoever does what."""
    return max(sum(sizes) / world_size, max(sizes, default=0))


def dealt(things: list, world_size: int) -> list[list]:
    """Return each rank's share if things are dealt in turn, as cards are."""
    return [things[rank::world_size] for rank in range(world_size)]


def to_the_least_loaded(sizes: list[float], world_size: int) -> list[list[float]]:
    """Return each rank's share if each size, in this order, goes where least is."""
    shares = [[] for _ in range(world_size)]
    for size in sizes:
        min(shares, key=sum).append(size)
    return shares


def alike(shares: list[list], others: list[list]) -> bool:
    """Return whether two ways to share are the same but for who has which share."""
    return sorted(map(sorted, shares)) == sorted(map(sorted, others))


def in_a_row(tasks: list, done: list[list]) -> bool:
    """Return whether every rank did neighbours of the list, and no other tasks."""
    places = [sorted(map(tasks.index, own)) for own in done if own]
    return all(own[-1] - own[0] + 1 == len(own) for own in places)


def miscounts_told(tasks: list, done: list[list]) -> list[str]:
    """Return in sentences who did the tasks that were done too often or too seldom."""
    often, wanted, told = surplus(tasks, done), Counter(tasks), {}
    for task in sorted({*often, *undone(tasks, done)}, key=tasks.index):
        ranks = tuple(rank for rank, own in enumerate(done) for t in own if t == task)
        told.setdefault((ranks, wanted[task]), []).append(task)
    return [_told(names, *who) for who, names in told.items()]


def _told(names, ranks, wanted):
    subject = "Task {} was" if len(names) == 1 else "Tasks {} were"
    by = "nobody"
    if ranks:
        by = f"rank{'s' * (len(set(ranks)) > 1)} {in_words(ranks)}"
    each = "it" if len(names) == 1 else "each"
    listed = f", and the list has {each} {wanted} times" * (wanted > 1)
    return f"{subject.format(in_words(names))} done by {by}{listed}."


def in_words(names: Iterable) -> str:
    """Return "a", "a and b", or "a, b and c"; a name that repeats says how often."""
    words = [
        f"{name} ({times} times)" if times > 1 else f"{name}"
        for name, times in Counter(names).items()
    ]
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + words[-1:])
