"""algbw and busbw against NCCL-tests' factors; alpha and beta found in samples."""

import math
import random

import pytest

from distlab import InvalidArgument
from distlab.cost import algbw, busbw, fit_link

# doc/PERFORMANCE.md of nccl-tests
FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1,
    "reduce": lambda n: 1,
    "all_gather": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
}


@pytest.mark.parametrize("collective", FACTORS)
@pytest.mark.parametrize("n", [2, 3, 8, 1000])
def test_busbw_is_algbw_times_the_factor_of_nccl_tests(collective, n):
    expected = algbw(1e6, 0.25) * FACTORS[collective](n)
    assert busbw(collective, n, 1e6, 0.25) == pytest.approx(expected)


def test_bandwidths_without_a_time_or_a_collective_are_refused():
    for seconds in (0, -1, math.nan, math.inf):
        with pytest.raises(InvalidArgument, match="time above 0"):
            algbw(1, seconds)
    with pytest.raises(InvalidArgument, match="no busbw of 'barrier'"):
        busbw("barrier", 4, 1, 1)


SIZES = [2**k for k in range(3, 27)]


def test_a_line_without_noise_is_found_again_exactly():
    fit = fit_link((size, 20e-6 + size / 3e9) for size in SIZES)
    assert fit.latency_s == pytest.approx(20e-6) and not fit.clipped
    assert fit.bytes_per_s == pytest.approx(3e9)
    assert fit.latency_error_s < 1e-11 and fit.bytes_per_s_error < 1e3
    assert fit.seconds(3_000_000) == pytest.approx(1020e-6)


def test_the_largest_messages_do_not_drown_the_latency():
    draw = random.Random(7)
    latencies, covered = [], 0
    for _ in range(200):
        samples = [
            (size, (20e-6 + size / 3e9) * draw.gauss(1, 0.05)) for size in SIZES * 2
        ]
        fit = fit_link(samples)
        latencies.append(fit.latency_s)
        covered += abs(fit.latency_s - 20e-6) <= 2 * fit.latency_error_s
    assert max(abs(each / 20e-6 - 1) for each in latencies) < 0.1
    assert 170 <= covered <= 200  # 19 of 20 would be 190


def test_a_latency_below_zero_is_clipped_and_says_so():
    fit = fit_link([(10, 0.9), (20, 2.1), (30, 3.0), (40, 4.1)])
    assert fit.clipped and fit.latency_s == 0 and fit.fitted_latency_s < 0
    assert fit.latency_error_s > 0
    assert fit.bytes_per_s == pytest.approx(10, rel=0.05)


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ([(1, 1), (2, 2)], "three samples"),
        ([], "three samples"),
        ([(5, 1), (5, 2), (5, 3)], "same size"),
        ([(1, 1), (2, 2), (-3, 3)], "from 0 up"),
        ([(1, 1), (2, 2), (3, -3)], "above 0"),
        ([(1, 1), (2, 0), (3, 3)], "above 0"),
        ([(1, 1), (2, math.nan), (3, 3)], "above 0"),
        ([(1, 1), (math.inf, 2), (3, 3)], "from 0 up"),
        ([(1, 1), (2, "x"), (3, 3)], "bytes, seconds"),
        ([(1, 1), (2, 2, 2), (3, 3)], "bytes, seconds"),
        ([(1, 3), (2, 2), (3, 1)], "does not grow"),
    ],
)
def test_samples_that_say_nothing_are_refused(samples, reason):
    with pytest.raises(InvalidArgument, match=reason):
        fit_link(samples)
