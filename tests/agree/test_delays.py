"""Distributions of delays, against their distribution functions written out."""

import math
import random
import subprocess
import sys

import numpy
import pytest

from distlab.errors import InvalidArgument
from distlab.network.delays import (
    Exponential,
    Mixture,
    Pareto,
    Recorded,
    UniformDelay,
)


def pareto(x):
    return 1 - (2 / x) ** 3 if x > 2 else 0.0


def exponential(x):
    return 1 - math.exp(-(x - 1) / 4) if x > 1 else 0.0


def uniform(x):
    return min(1.0, max(0.0, (x - 1) / 8))


LIKELY = [  # a distribution, the probability of a delay of x at most, the mean
    (UniformDelay(1, 9), uniform, 5.0),
    (Exponential(5, least_s=1), exponential, 5.0),
    (Pareto(2, 3), pareto, 3.0),
    (Recorded([1, 3, 3, 6]), lambda x: sum(x >= s for s in (1, 3, 3, 6)) / 4, 3.25),
    (
        Mixture((1, UniformDelay(1, 9)), (5, Exponential(5, 1)), (4, Pareto(2, 3))),
        lambda x: 0.1 * uniform(x) + 0.5 * exponential(x) + 0.4 * pareto(x),
        4.2,
    ),
]


@pytest.mark.parametrize(
    "delays, likely, mean_s", LIKELY, ids=[type(one[0]).__name__ for one in LIKELY]
)
def test_delays_are_as_likely_as_the_formula_says(delays, likely, mean_s):
    dice = random.Random(1)
    single = numpy.array([delays.draw(dice) for _ in range(20_000)])
    array = delays.draws(numpy.random.default_rng(1), (5_000, 4))
    assert array.shape == (5_000, 4) and type(single[0]) is numpy.float64
    for drawn in (single, array):
        off = [abs((drawn <= x).mean() - likely(x)) for x in (1.5, 2.5, 3, 5, 8.5, 20)]
        assert max(off) < 2 / math.sqrt(drawn.size)
    assert delays.mean_s == pytest.approx(mean_s)


def test_single_delays_and_their_import_need_no_numpy():
    code = (
        "import random, sys; from distlab.agree import pbs\n"
        "drawn = [c.write.draw(random.Random(1)) for c in pbs.CLUSTERS.values()]\n"
        "print(min(drawn) > 0, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True False", done.stderr


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: UniformDelay(2, 1), "shortest_s is above longest_s"),
        (lambda: UniformDelay(-1, 1), "shortest_s of .* seconds, and got -1"),
        (lambda: Exponential("5 ms"), "mean_s of .*'5 ms'"),
        (lambda: Exponential(1, 2), "least_s is above mean_s"),
        (lambda: Pareto(1, 1), "the mean delay is infinite"),
        (lambda: Pareto(1, math.nan), "shape is a number above 1"),
        (lambda: Pareto(math.inf, 2), "least_s of .*inf"),
        (lambda: Recorded([]), r"at least one delay.*got \[\]"),
        (lambda: Recorded(3), "at least one delay.*got 3"),
        (lambda: Recorded([1, -2]), "sample 1 of Recorded .* -2"),
        (lambda: Mixture(), "a weight above 0 and a distribution"),
        (lambda: Mixture((1, Pareto(1, 2)), (0, Pareto(1, 2))), r"got \(0, Pareto"),
        (lambda: Mixture(Pareto(1, 2)), "got Pareto"),
    ],
)
def test_a_wrong_parameter_is_named(make, words):
    with pytest.raises(InvalidArgument, match=words):
        make()
