"""Hundreds of simulated runs of every store, in which much goes wrong, are judged."""

import random
from functools import partial

import pytest

from distlab.agree import (
    KeyValue,
    PrimaryCopy,
    Quorum,
    check_linearizable,
    final_reads,
    workload,
)
from distlab.faults import Crash, Split
from distlab.network import Delivery, simulate

NODES = 3


def trouble(seed, crashes=2, splits=2, loss=0.05):
    """Return faults and a delivery, as the dice have it; all is well after 1 s."""
    dice = random.Random(f"trouble {seed}")
    faults = []
    for _ in range(splits):
        at_s, alone = dice.uniform(0, 0.7), dice.randrange(NODES)
        rest = [node for node in range(NODES) if node != alone]
        faults.append(Split(at_s, [alone], rest, until_s=at_s + dice.uniform(0, 0.3)))
    at_s = 0.0
    for _ in range(crashes):
        at_s += dice.uniform(0.01, 0.3)
        end_s = at_s + dice.uniform(0.001, 0.15)
        faults.append(Crash(dice.randrange(NODES), at_s, until_s=end_s))
        at_s = end_s
    slow_s = dice.choice([0.005, 0.03, 0.1])
    return faults, Delivery((0.001, slow_s), loss=loss, duplicate=0.2)


def history_of(make, seed, **knobs):
    faults, delivery = trouble(seed, **knobs)
    clients = workload(NODES, 6, operations=10, keys=1 + seed % 2, seed=seed)
    clients += final_reads(NODES, keys=2, start_s=8)
    run = simulate(
        make, NODES, clients, faults=faults, delivery=delivery, seed=seed, until_s=30
    )
    return run.history


def violations(make, check, seeds, **knobs):
    """Return the seeds whose run violates; every run must have been decided."""
    found = []
    for seed in seeds:
        verdict = check(history_of(make, seed, **knobs))
        assert not verdict.inconclusive, verdict.why
        found += [seed] * verdict.violated
    return found


def linearizable(history):
    return check_linearizable(history, KeyValue())


RIGHT = {
    "majority": Quorum,
    "read one, write all": partial(Quorum, reads=1, writes=3),
    "synchronous": PrimaryCopy,
    "asynchronous": partial(PrimaryCopy, synchronous=False),
    "primary 2": partial(PrimaryCopy, primary=2),
}


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT)
def test_a_store_that_is_right_is_linearizable_whatever_goes_wrong(make):
    assert not violations(make, linearizable, range(150))
