"""The laws of scaling: identities, a published table, fits of known numbers."""

import math

import pytest

from distlab import InvalidArgument, cost

MEGATRON = {1: 1.0, 2: 1.64, 4: 2.34, 8: 2.98}  # Shoeybi et al. (2019), strong scaling


def test_amdahl_has_its_limit_and_is_usl_without_coherency():
    assert cost.amdahl_speedup(10**9, 0.05) == pytest.approx(20)
    for n in (1, 2, 7, 64):
        assert cost.usl_speedup(n, 0.05, 0) == pytest.approx(
            cost.amdahl_speedup(n, 0.05)
        )


def test_gustafson_counts_the_same_job_from_the_other_side():
    n, serial = 16, 0.1
    on_one = serial + (1 - serial) * n  # the time that one worker would take
    assert cost.gustafson_speedup(n, serial) == on_one
    assert cost.amdahl_speedup(n, serial / on_one) == pytest.approx(on_one)


def test_karp_flatt_finds_the_serial_part_of_a_job_that_has_one():
    for n in (2, 5, 100):
        assert cost.karp_flatt(n, cost.amdahl_speedup(n, 0.13)) == pytest.approx(0.13)


def test_the_serial_part_of_megatron_rises_as_published_speedups_say():
    parts = [cost.karp_flatt(n, s) for n, s in MEGATRON.items() if n > 1]
    assert parts == pytest.approx([0.2195, 0.2365, 0.2407], abs=1e-4)


def test_fits_find_what_was_put_in():
    sizes = range(1, 33)
    exact = {n: cost.usl_speedup(n, 0.03, 0.002) for n in sizes}
    assert cost.fit_usl(exact) == pytest.approx((0.03, 0.002))
    assert cost.fit_amdahl({n: cost.amdahl_speedup(n, 0.2) for n in sizes}) == (
        pytest.approx(0.2)
    )


def test_the_peak_of_a_fit_is_where_the_curve_turns():
    peak = cost.usl_peak(0.03, 0.002)
    best = max(range(1, 100), key=lambda n: cost.usl_speedup(n, 0.03, 0.002))
    assert abs(best - peak) < 1
    assert cost.usl_peak(0.03, 0) == math.inf


def test_a_fit_never_has_a_part_below_zero():
    faster_than_ideal = {1: 1, 2: 2.2, 4: 4.8}
    assert cost.fit_usl(faster_than_ideal) == (0.0, 0.0)
    assert cost.fit_amdahl(faster_than_ideal) == 0.0
    contention, coherency = cost.fit_usl({2: 1.2, 4: 2.6, 8: 5.0})
    assert contention > 0 and coherency == 0
    contention, coherency = cost.fit_usl({2: 2, 4: 3.9, 8: 5.0})
    assert contention == 0 and coherency > 0


def test_numbers_that_say_nothing_are_refused():
    for call in (
        lambda: cost.amdahl_speedup(0, 0.1),
        lambda: cost.karp_flatt(1, 1.0),
        lambda: cost.fit_usl({1: 1.0, 2: 1.5}),
        lambda: cost.fit_amdahl({1: 1.0}),
        lambda: cost.fit_amdahl({2: -1.0}),
    ):
        with pytest.raises(InvalidArgument):
            call()
