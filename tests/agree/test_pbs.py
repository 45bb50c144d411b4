"""Predicted staleness, against published tables, closed forms, and simulated runs."""

import itertools
import math
import random
from functools import partial

import numpy
import pytest

from distlab import Call
from distlab.agree import Quorum, pbs
from distlab.errors import InvalidArgument
from distlab.network import Client, Delivery, simulate
from distlab.network.delays import Exponential, Mixture, Pareto, UniformDelay

ZERO = UniformDelay(0, 0)

# Bailis et al., VLDB 2012, Table 4, N = 3: R, W, and for each cluster the 99.9th
# percentiles of reads and writes, and t for 99.9 %, all in ms; a million trials each.
ORDER = "YMMR", "WAN", "LNKD-SSD", "LNKD-DISK"
PUBLISHED = """
1 1  5.58   10.83   1364  3.4    55.12  113   0.66 0.66 1.85  0.66 10.99  45.5
1 2  5.61   427.12  1352  3.4    167.64 0     0.66 1.63 1.79  0.65 20.97  43.3
2 1  32.6   10.73   202   151.3  56.36  30.2  1.63 0.65 0     1.63 10.9   13.6
2 2  33.18  428.11  0     151.31 167.72 0     1.62 1.64 0     1.64 20.96  0
3 1  219.27 10.79   0     153.86 55.19  0     4.14 0.65 0     4.12 10.89  0
1 3  5.63   1870.86 0     3.44   241.55 0     0.65 4.09 0     0.65 112.65 0
"""
# The same, section 5.6: per cent of consistent reads at t = 0 and 10 ms for R = W = 1.
AT_ONCE = {"LNKD-SSD": (97.5, 100), "LNKD-DISK": (43.9, 92.5), "YMMR": (89.3, 93.9)}


def published():
    for row in PUBLISHED.split("\n")[1:-1]:
        r, w, *times = row.split()
        for number, cluster in enumerate(ORDER):
            three = [float(time) for time in times[3 * number :][:3]]
            marks = () if r == w == "1" else pytest.mark.nightly
            yield pytest.param(cluster, int(r), int(w), three, marks=marks)


@pytest.mark.parametrize("cluster, r, w, times_ms", [*published()])
def test_the_papers_clusters_have_the_published_numbers(cluster, r, w, times_ms):
    predicted = pbs.staleness(3, r, w, cluster, [0, 0.01])
    latencies = [1e3 * predicted.read_s(), 1e3 * predicted.write_s()]
    assert latencies == pytest.approx(times_ms[:2], rel=0.03)
    assert 1e3 * predicted.visible_after_s() == pytest.approx(times_ms[2], rel=0.2)
    if r == w == 1 and cluster in AT_ONCE:
        assert 100 * predicted.probability == pytest.approx(AT_ONCE[cluster], abs=0.5)


def test_k_staleness_has_the_published_values():
    """Section 3.1 of the paper."""
    stale = partial(pbs.k_staleness, 3, 1)
    fresh = [1 - stale(w, k) for w, k in [(1, 2), (1, 3), (1, 5), (2, 1), (2, 2)]]
    assert fresh == pytest.approx([5 / 9, 0.7037, 0.868, 2 / 3, 8 / 9], abs=5e-4)
    assert 1 - stale(1, 10) > 0.98 and 1 - stale(2, 5) > 0.995
    assert pbs.k_staleness(3, 2, 2) == 0


@pytest.mark.parametrize("n, r, w", [(3, 1, 1), (3, 2, 1), (5, 2, 2), (5, 1, 4)])
def test_reads_at_random_begin_at_k_staleness_and_forget_exponentially(n, r, w):
    """Only writes take time, so each replica without the write has the same rest."""
    waits = pbs.Wars(Exponential(0.02), ZERO)
    predicted = pbs.staleness(n, r, w, waits, trials=100_000)
    times = numpy.array([0, 0.005, 0.02, 0.05])
    stale = pbs.k_staleness(n, r, w) * numpy.exp(-r * times / 0.02)
    assert predicted.consistent(times) == pytest.approx(1 - stale, abs=0.006)
    both = predicted.consistent(0.005, versions=2)
    assert both == pytest.approx(1 - stale[1] ** 2, abs=0.006)


def one_trial(dice, n, r, w, delays):
    """One write and one read, replica by replica: (the write's latency, t needed)."""

    def trips(there, back):
        near, pairs = dice.randrange(n), []
        for replica in range(n):
            pair = there.draw(dice), back.draw(dice)
            if replica != near:
                pair = pair[0] + delays.remote_s, pair[1] + delays.remote_s
            pairs.append((0, 0) if delays.local and replica == near else pair)
        return pairs

    writes = trips(delays.write, delays.acknowledge)
    reads = trips(delays.read, delays.response)
    done = sorted(map(sum, writes))[w - 1]
    first = sorted(range(n), key=lambda replica: sum(reads[replica]))[:r]
    return done, min(writes[each][0] - reads[each][0] for each in first) - done


TAIL = Mixture((0.7, Pareto(0.001, 1.5)), (0.3, Exponential(0.01)))


@pytest.mark.parametrize("extra", [{}, {"local": True}, {"remote_s": 0.02}])
@pytest.mark.parametrize("n, r, w", [(4, 2, 1), (5, 1, 3)])
def test_a_million_trials_at_once_are_trials_one_by_one(n, r, w, extra):
    delays = pbs.Wars(TAIL, Exponential(0.004), UniformDelay(0, 0.01), TAIL, **extra)
    predicted = pbs.staleness(n, r, w, delays, trials=40_000)
    dice = random.Random(5)
    slow = numpy.array([one_trial(dice, n, r, w, delays) for _ in range(3_000)])
    for t_s in (0, 0.003, 0.01, 0.03):
        share = (slow[:, 1] <= t_s).mean()
        assert predicted.consistent(t_s) == pytest.approx(share, abs=0.03)
    halves = [predicted.write_s(50), predicted.write_s(90)]
    slow_halves = numpy.percentile(slow[:, 0], [50, 90])
    assert halves == pytest.approx(slow_halves, rel=0.12)


def test_overlapping_quorums_never_read_a_stale_value():
    wide = Mixture((0.5, Pareto(0.001, 1.1)), (0.5, Exponential(1.0)))
    delays = [pbs.Wars(wide), pbs.Wars(wide, local=True), pbs.Wars(wide, remote_s=9.0)]
    for n in (1, 2, 3, 5):
        for r, w in itertools.product(range(1, n + 1), repeat=2):
            for each in delays if r + w > n else ():
                predicted = pbs.staleness(n, r, w, each, trials=500)
                assert predicted.probability == 1 and predicted.visible_after_s() == 0
    assert "always: R + W > N" in repr(pbs.staleness(3, 2, 2, "WAN", trials=10))


def clients(writes, every_s, pause_s):
    """One writer at node 0, and a reader at each node."""
    numbers = range(writes)
    yield Client(0, [Call("write", "x", n) for n in numbers], pause_s=every_s)
    reads = [Call("read", "x")] * int(writes * every_s / pause_s)
    for node in range(3):
        yield Client(node, reads, start_s=node / 1000, pause_s=pause_s)


def test_a_simulated_store_is_as_stale_as_predicted():
    store = partial(Quorum, reads=1, writes=1, write_back=False)
    delivery = Delivery((0.002, 0.06))
    run = simulate(store, 3, clients(120, 0.1, 0.0093), delivery=delivery)
    given = pbs.Wars(UniformDelay(0.002, 0.06), local=True)
    measured = pbs.measured_wars(run.trace)
    shares = []
    for delays in (given, measured, pbs.Wars(given.write)):
        predicted = pbs.staleness(3, 1, 1, delays, trials=50_000)
        rows = pbs.compare(run.history, predicted, until_s=0.06, bins=6)
        shares.append(max(abs(seen - foretold) for _, seen, foretold in rows))
    assert max(shares[:2]) < 0.05 < 0.1 < shares[2]  # coordinators are replicas here
    assert measured.read.mean_s == pytest.approx(0.031, rel=0.02)


@pytest.mark.parametrize(
    "ask, words",
    [
        (lambda: pbs.staleness(0, 1, 1, "WAN"), "n=0: the number of replicas"),
        (lambda: pbs.staleness(3, 4, 1, "WAN"), "r=4: a quorum of 3 is 1 to 3"),
        (lambda: pbs.staleness(3, 1, 0, "WAN"), "w=0: a quorum of 3 is 1 to 3"),
        (lambda: pbs.staleness(3, 1, 1, "LNKD"), "delays='LNKD' is no Wars.*YMMR"),
        (lambda: pbs.staleness(3, 1, 1, 0.01), "delays=0.01 is no Wars"),
        (lambda: pbs.staleness(3, 1, 1, "WAN", trials=0), "trials=0"),
        (lambda: pbs.staleness(3, 1, 1, "WAN", -1, trials=9), "t_s=-1: seconds"),
        (lambda: pbs.staleness(3, 1, 1, "WAN", [0, math.nan], trials=9), "t_s="),
        (lambda: pbs.k_staleness(3, 1, 4), "w=4"),
        (lambda: pbs.Wars(0.01), "write=0.01 is no distribution"),
        (lambda: pbs.Wars(ZERO, remote_s=-1), "remote_s is .* -1"),
    ],
)
def test_a_wrong_argument_is_named(ask, words):
    with pytest.raises(InvalidArgument, match=words):
        ask()


def test_a_run_without_the_messages_or_the_reads_is_refused():
    run = simulate(Quorum, 3, Client(0, [Call("read", "x")]))
    with pytest.raises(InvalidArgument, match="no message 'Put' arrived"):
        pbs.measured_wars(run.trace, ("Put", "CopyStored", "Ask", "Have"))
    with pytest.raises(InvalidArgument, match="0 reads within inf s after a write"):
        pbs.compare(run.history, pbs.staleness(3, 2, 2, "WAN", trials=9))
