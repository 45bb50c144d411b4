"""The exact answer of the check, against trying them all."""

import random
from fractions import Fraction

import pytest

from distlab.grading import BestWorldSize


def tried(serial_s, parallel_s, message_s, most):
    times = {
        n: Fraction(serial_s) + Fraction(parallel_s) / n + Fraction(message_s) * (n - 1)
        for n in range(1, most + 1)
    }
    best = min(times, key=times.get)  # the first of several
    return best, float(times[1] / times[best])


def answer_of(job):
    check = BestWorldSize(None, *job)
    return check.best(), check.speed_up(check.best())


@pytest.mark.parametrize("seed", range(60))
def test_the_answer_is_the_one_found_by_trying_them_all(seed):
    dice = random.Random(seed)
    parallel_s = dice.choice([0, dice.randint(1, 400), dice.uniform(0, 50)])
    message_s = dice.choice([0, dice.randint(1, 5), dice.uniform(0, 2)])
    job = dice.randint(1, 9), parallel_s, message_s, dice.choice([1, 2, 7, 300])
    assert answer_of(job) == tried(*job)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 99])
def test_of_two_equally_fast_sizes_the_answer_is_the_smaller(n):
    job = 1, n * (n + 1), 1, 200
    assert answer_of(job) == tried(*job)
    assert answer_of(job)[0] == n


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_nearest_whole_number_is_not_always_the_answer(n):
    parallel_s = n * (n + 1) + 0.1
    assert round(parallel_s**0.5) == n
    assert answer_of((1, parallel_s, 1, 50)) == tried(1, parallel_s, 1, 50)
    assert answer_of((1, parallel_s, 1, 50))[0] == n + 1


def test_a_million_million_sizes_are_no_trouble():
    assert answer_of((0, 7, 0, 10**12)) == (10**12, 1e12)
    assert answer_of((1, 400, 1, 10**12))[0] == tried(1, 400, 1, 100)[0]
