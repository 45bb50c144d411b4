"""Suspicion from heartbeats, and ranks that compute wrongly."""

import math
import random
from statistics import NormalDist

import pytest
import torch

from distlab import Corrupt, InvalidArgument, RankRaised, Slow, run, show
from distlab.collectives import ring_all_reduce
from distlab.links import LINKS
from distlab.simulated import Uniform
from distlab.train.detection import (
    FixedTimeout,
    PhiAccrual,
    arrivals,
    beat,
    judge,
    odd_ranks,
    recomputed,
)

FABRIC = Uniform(LINKS["InfiniBand NDR"])


def heard(detector, times):
    for now_s in times:
        detector.beat(now_s)
    return detector


def test_phi_is_the_tail_of_the_intervals_and_the_timeout_is_where_it_is_reached():
    detector = heard(PhiAccrual(3), [0, 0.9, 2.0, 3.1, 4.0])
    usual = NormalDist(1.0, math.sqrt((0.01 * 4) / 4))
    for since in (0.5, 1.0, 1.3):
        expected = -math.log10(1 - usual.cdf(since))
        assert detector.phi(4.0 + since) == pytest.approx(expected, rel=1e-9)
    assert detector.phi(4.0 + detector.timeout_s()) == pytest.approx(3)
    assert detector.phi(100) > 1000  # where the tail is 0 in floating point
    rising = [detector.phi(4 + k / 100) for k in range(2000)]
    assert rising == sorted(rising)


def test_before_two_heartbeats_nobody_is_suspected():
    assert PhiAccrual().phi(1e9) == 0
    assert heard(PhiAccrual(), [5]).timeout_s() == math.inf


def silent(comm):
    beat(comm, 8, 0.1, stops={2: 4.0}, jitter=lambda draw: draw.uniform(0.8, 1.2))


def test_on_the_virtual_clock_the_silent_rank_is_suspected_and_no_other():
    times = arrivals(run(silent, 4, fabric=FABRIC).trace)
    for rank in (1, 2, 3):
        timeout_s = heard(PhiAccrual(8, least_std_s=0.02), times[rank]).timeout_s()
        suspected = 8 - times[rank][-1] > timeout_s
        assert suspected == (rank == 2)
        assert timeout_s < 0.6
    assert 3.85 < times[2][-1] <= 4.0
    picture = show.suspicion(times, lambda: PhiAccrual(8), seconds=8)
    assert "rank 2 is suspected at" in picture.alt


def real(comm):
    beat(comm, 0.31, 0.03, stops={1: 0.16})


def test_on_real_processes_the_silent_rank_falls_silent_and_a_slow_one_does_not():
    times = arrivals(run(real, 3, faults=Slow(2, 4)).trace)
    assert {rank: len(heard) for rank, heard in times.items()} == {1: 5, 2: 10}


def series(jitter, count=20_000, seed=1):
    draw, now_s, times = random.Random(seed), 0.0, []
    for _ in range(count):
        now_s += jitter(draw)
        times.append(now_s)
    return times


def test_with_a_higher_threshold_fewer_alarms_are_false_and_detection_takes_longer():
    times = series(lambda draw: draw.gauss(1, 0.1))
    found = [judge(PhiAccrual(threshold), times) for threshold in (1, 2, 3)]
    for outcome, expected in zip(found, (0.1, 0.01, 0.001), strict=True):
        assert outcome.false_alarms / 20_000 == pytest.approx(expected, rel=0.5)
    assert found[0].detects_s < found[1].detects_s < found[2].detects_s


def test_phi_adapts_to_a_slower_network_and_a_fixed_timeout_does_not():
    slower = [*series(lambda draw: draw.gauss(1, 0.1), 2000)]
    slower += [slower[-1] + t for t in series(lambda draw: draw.gauss(2, 0.2), 2000)]
    assert judge(FixedTimeout(1.5), slower).false_alarms > 1900
    assert judge(PhiAccrual(4), slower).false_alarms < 50


def test_with_a_heavy_tail_phi_promises_too_much():
    times = series(lambda draw: draw.paretovariate(3))
    assert judge(PhiAccrual(4), times).false_alarms > 20 * 20_000 / 10**4


def parameters(comm, number):
    torch.manual_seed(0)
    p = torch.zeros(8)
    for _ in range(3):
        gradient = torch.ones(8) * (comm.rank + 1)
        ring_all_reduce(comm, gradient)
        p += gradient
    return odd_ranks(comm, [p]), p[0].item()


@pytest.mark.parametrize("step, odd", [(1, []), (4, [1]), (6, [2])])
def test_the_majority_sees_what_is_wrong_after_the_sum_and_not_before(step, odd):
    report = run(parameters, 4, args=[0], faults=Corrupt(1, step))
    assert [result[0] for result in report.results] == [odd] * 4
    assert report.results[0][1] != 30 or odd or step == 1


def pair(comm):
    return odd_ranks(comm, [torch.full((2,), float(comm.rank))])


def test_two_ranks_cannot_say_which_one_is_wrong():
    with pytest.raises(RankRaised, match="no value has a majority"):
        run(pair, 2)


def computes(comm, wrong, always):
    first = [True]

    def gradients_of(rank):
        right = torch.arange(4.0) * (rank + 1)
        if comm.rank == wrong and (always or first[0]):
            first[0] = False
            right[1] += 1e-6
        return [right]

    return recomputed(comm, gradients_of)


@pytest.mark.parametrize(
    "wrong, always, named", [(None, True, []), (2, True, [2]), (2, False, [2, 3])]
)
def test_computing_twice_finds_the_rank_that_computes_wrongly(wrong, always, named):
    assert run(computes, 4, args=[wrong, always]).results == [named] * 4


def test_a_threshold_that_phi_cannot_reach_is_refused():
    with pytest.raises(InvalidArgument, match="threshold=20"):
        PhiAccrual(20)
