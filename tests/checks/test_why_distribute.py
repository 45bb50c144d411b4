"""The law and its tolerances against other fits; answers without a variant."""

import math
import random

import numpy as np
import pytest

from distlab import cost
from distlab.checks import why_distribute as checks
from distlab.checks.kit.grading import judge


@pytest.mark.parametrize("near", [0.6, 1.46, 2.5, 7, 24])
def test_the_best_count_is_the_one_found_by_trying_them_all(near):
    for _ in range(20):
        law, _ = checks.draw_system(1, 4, near, "exact")
        speedups = {n: cost.usl_speedup(n, *law[1:]) for n in range(1, 60)}
        assert checks.best_count(*law[1:]) == max(speedups, key=speedups.get)


def fitted(measured, weigh):
    n, x = np.array(measured, dtype=float).T
    columns = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1) / n[:, None]
    weights = weigh(n, x)
    rows = (columns * weights[:, None], weights / x)
    one, queue, pairs = np.linalg.lstsq(*rows, rcond=None)[0]
    sigma, kappa = queue / one, pairs / one
    return sigma, kappa, checks.best_count(sigma, kappa)


WEIGHTS = {
    "of n / X": lambda n, x: n,
    "of seconds": lambda n, x: np.ones_like(n),
    "of relative errors": lambda n, x: x,
}


@pytest.mark.parametrize("runs", ["last run slow", "one run slow"])
@pytest.mark.parametrize("near", [9, 10])
@pytest.mark.parametrize("weigh", WEIGHTS.values(), ids=WEIGHTS)
def test_least_squares_of_all_points_is_always_near_enough(weigh, near, runs):
    for _ in range(300):
        law, measured = checks.draw_system(1, 32, near, runs)
        yours = fitted(measured, weigh)
        assert checks.compare(yours, law, checks.DISTURBED) == (True, True)


@pytest.mark.parametrize("near", [9, 10])
def test_a_curve_through_the_first_the_middle_and_the_last_point_never_is(near):
    for _ in range(300):
        law, measured = checks.draw_system(1, 32, near, "last run slow")
        three = [measured[i] for i in (0, 16, -1)]
        yours = fitted(three, WEIGHTS["of n / X"])
        assert not checks.compare(yours, law, checks.DISTURBED)[0]


FOUR = 4, "abcdefgh"


def collected(comm, own):
    if comm.rank:
        return comm.send_object(own, 0)
    return own + sum(comm.recv_object(rank) for rank in range(1, comm.world_size))


def as_a_set(comm, tasks, work):
    mine = sorted(set(tasks))[comm.rank :: comm.world_size]
    return collected(comm, sum(map(work, mine)))


def by_hash(comm, tasks, work):
    mine = [task for task in tasks if hash(task) % comm.world_size == comm.rank]
    return collected(comm, sum(map(work, mine)))


def own_parts(comm, tasks, work):
    return sum(map(work, tasks[comm.rank :: comm.world_size]))


def without_rank_0(comm, tasks, work):
    others = comm.world_size - 1
    mine = tasks[comm.rank - 1 :: others] if comm.rank else []
    return collected(comm, sum(map(work, mine)))


def breaks_ties_at_random(comm, tasks, work, size_of):
    loads, part = [0] * comm.world_size, 0
    for task in sorted(tasks, key=size_of, reverse=True):
        rank = min(range(comm.world_size), key=lambda r: (loads[r], random.random()))
        loads[rank] += size_of(task)
        part += work(task) if rank == comm.rank else 0
    return collected(comm, part)


def fit(measured, *, divided=True, least=1e-6):
    n, x = np.array(measured, dtype=float).T
    columns = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    one, queue, pairs = np.linalg.lstsq(columns, n / x, rcond=None)[0]
    one = one if divided else 1
    sigma, kappa = queue / one, pairs / one
    if kappa < least:
        return sigma, 0, math.inf
    return sigma, kappa, round(math.sqrt((1 - sigma) / kappa))


def undivided(measured):
    return fit(measured, divided=False)


def exactly_0(measured):
    return fit(measured, least=0)


TIES = 4, [1] * 24  # by chance the same: once in a million runs
FAR = 1, 16, 10_000, "exact"


@pytest.mark.parametrize(
    "check, answer, case, hint",
    [
        ("shared_work", by_hash, (4, "abcdefghijk"), "Some tasks are lost"),
        ("shared_work", own_parts, FOUR, "What a rank learns has to arrive"),
        ("shared_work", without_rank_0, (1, "abc"), "there is no other"),
        ("shared_work", without_rank_0, (2, "abc"), "is not shared"),
        ("balanced_work", breaks_ties_at_random, TIES, "the same assignment"),
        ("fit_usl", undivided, (2, 16, 10, "exact"), "What is sigma"),
        ("fit_usl", exactly_0, FAR, "below 1e-6 counts as 0"),
        ("shared_work", as_a_set, (3, "abcab"), "Some tasks are lost"),
        ("shared_work", lambda c, t, w: sum(map(w, t)), FOUR, "is not shared"),
        (
            "fit_usl",
            cost.fit_usl,
            (1, 4, 2, "exact"),
            "Nothing of your own does the work",
        ),
    ],
)
def test_a_mistake_meets_the_hint_that_fits(check, answer, case, hint):
    verdict = judge(getattr(checks, check), answer, case)
    assert verdict.outcome == "fail" and hint in verdict.hints[0], verdict
