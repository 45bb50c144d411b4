"""A word count on real processes, killed at random moments: the counts are exact."""

import random

import pytest

from distlab.agree.stream import KeyedCount, run_with_kills, word_count_job

QUICK = {"every_s": 0.01}


def exact(kills, seed, **job):
    result = run_with_kills(word_count_job(**QUICK | job), kills, seed=seed)
    assert result.output == result.truth == result.truth_so_far == result.state
    assert result.truth.total() > 0
    return result


def test_counts_are_exact_after_three_kills():
    exact(3, seed=0)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_counts_are_exact_after_fifty_kills_in_ten_runs(seed):
    exact(5, seed, sink=("transactional", "idempotent")[seed % 2])


@pytest.mark.nightly
def test_at_most_once_loses_and_at_least_once_doubles():
    lost = doubled = 0
    for seed in range(4):
        job = word_count_job(guarantee="at most once", **QUICK)
        result = run_with_kills(job, 6, seed=seed, nodes=(4, 5))
        lost += result.lost
        assert result.doubled == 0
        job = word_count_job(guarantee="at least once", **QUICK)
        result = run_with_kills(job, 6, seed=seed, nodes=(4, 5))
        doubled += result.doubled
        assert result.lost == 0
    assert lost and doubled


@pytest.mark.nightly
def test_output_that_is_flushed_too_early_is_doubled_on_real_processes():
    class FlushesEarly(KeyedCount):
        def commits_at_barrier(self):
            return True

    for seed in range(8):
        job = word_count_job(operator=FlushesEarly, **QUICK)
        if run_with_kills(job, 8, seed=seed, nodes=(2, 3, 4, 5)).doubled:
            return
    raise AssertionError("64 kills, and nothing was doubled")


@pytest.mark.soak
@pytest.mark.parametrize("number", range(50))
def test_counts_are_exact_after_five_hundred_kills_in_fifty_runs(number):
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    exact(10, seed, sink=("transactional", "idempotent")[number % 2])
