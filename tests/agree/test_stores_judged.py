"""Hundreds of simulated runs of every store, in which much goes wrong, are judged."""

import random
from dataclasses import replace
from functools import partial

import pytest
from soaks import repeats

from distlab.agree import (
    Causal,
    KeyValue,
    LastWriterWins,
    PrimaryCopy,
    Quorum,
    VersionVectors,
    check_causal,
    check_converged,
    check_linearizable,
    check_monotonic_reads,
    check_monotonic_writes,
    check_read_your_writes,
    check_sequential,
    check_writes_follow_reads,
    final_reads,
    workload,
)
from distlab.faults import Crash, Split
from distlab.network import Client, Delivery, simulate
from distlab.trace import Call

CALM_S = 8


def trouble(seed, nodes):
    """Return faults and a delivery, as the dice have it; all is well after 1.5 s."""
    dice = random.Random(f"trouble {seed}")
    faults, at_s, crash_s = [], 0.0, 0.0
    for _ in range(2):
        at_s, alone = at_s + dice.uniform(0, 0.4), dice.randrange(nodes)
        rest = [node for node in range(nodes) if node != alone]
        end_s = at_s + dice.uniform(0.001, 0.3)
        faults.append(Split(at_s, [alone], rest, until_s=end_s))
        at_s = end_s
        crash_s += dice.uniform(0.01, 0.3)
        end_s = crash_s + dice.uniform(0.001, 0.15)
        faults.append(Crash(dice.randrange(nodes), crash_s, until_s=end_s))
        crash_s = end_s
    slow_s = dice.choice([0.005, 0.03, 0.1])
    return faults, Delivery((0.001, slow_s), loss=0.05, duplicate=0.2)


def run(make, seed, nodes=3, pause_s=0.02):
    faults, delivery = trouble(seed, nodes)
    clients = workload(nodes, 6, operations=10, keys=1 + seed % 2, seed=seed)
    clients = [replace(client, pause_s=pause_s) for client in clients]
    clients += final_reads(nodes, keys=2, start_s=CALM_S)
    return simulate(
        make, nodes, clients, faults=faults, delivery=delivery, seed=seed, until_s=30
    )


def violations(make, check, seeds, **knobs):
    """Return the seeds whose run violates; nearly all must have been decided."""
    found, undecided = [], 0
    for seed in seeds:
        verdict = check(run(make, seed, **knobs).history)
        undecided += verdict.inconclusive
        found += [seed] * verdict.violated
    assert undecided <= len(seeds) / 5
    return found


def linearizable(history):
    return check_linearizable(history, KeyValue())


def sequential(history):
    return check_sequential(history, KeyValue(), within_s=1)


RIGHT = {
    "majority": Quorum,
    "read one, write all": partial(Quorum, reads=1, writes=3),
    "synchronous": PrimaryCopy,
    "asynchronous": partial(PrimaryCopy, synchronous=False),
    "primary 2": partial(PrimaryCopy, primary=2),
}


@repeats(12, 50)
@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT)
def test_a_store_that_is_right_is_linearizable_whatever_goes_wrong(make, count):
    assert not violations(make, linearizable, range(count))


@repeats(8, 30)
def test_cas_through_the_primary_is_done_once(count):
    for seed in range(count):
        faults, delivery = trouble(seed, 3)
        clients = [Client(k % 3, partial(swaps, seed, k), 0.0, 0.01) for k in range(6)]
        make = partial(PrimaryCopy, synchronous=seed % 2 == 0)
        done = simulate(
            make, 3, clients, faults=faults, delivery=delivery, seed=seed, until_s=30
        )
        swapped = [each.result for each in done.history if each.op == "cas"]
        assert {True, False} <= set(swapped)
        assert linearizable(done.history).ok


def swaps(seed, client):
    """Read and swap, as counters do, again and again."""
    dice = random.Random(f"swaps {seed} {client}")
    known = None
    for number in range(8):
        if dice.random() < 0.5:
            known = yield Call("read", "x")
        else:
            yield Call("cas", "x", (known, 100 * client + number))


WEAKER = {
    "one order of all writes": (
        partial(PrimaryCopy, read_at="any"),
        [sequential],
        linearizable,
    ),
    "a beginning of the log": (
        partial(PrimaryCopy, synchronous=False, read_at="any"),
        [check_monotonic_reads, check_monotonic_writes, check_writes_follow_reads],
        check_read_your_writes,
    ),
    "one's own replica": (
        partial(Quorum, reads=1, write_back=False),
        [check_read_your_writes, check_monotonic_reads],
        linearizable,
    ),
    "causal order": (
        Causal,
        [check_causal],
        sequential,
    ),
    "the last writer": (
        LastWriterWins,
        [check_read_your_writes, check_monotonic_reads],
        sequential,
    ),
    "version vectors": (VersionVectors, [], linearizable),
}


@repeats(8, 25)
@pytest.mark.parametrize("name", WEAKER)
def test_a_weaker_store_keeps_what_it_promises_and_no_more(name, count):
    make, promised, broken = WEAKER[name]
    for check in promised:
        assert not violations(make, check, range(count), pause_s=0.002)
    assert violations(make, broken, range(15), pause_s=0.002)


STORES = {
    **RIGHT,
    **{name: make for name, (make, _, _) in WEAKER.items()},
}


@repeats(4, 12)
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_all_replicas_agree_some_time_after_the_split_has_healed(make, count):
    assert not violations(make, check_converged, range(count))


def on_both_sides(make):
    """Return what was written, and what is read at each node after the split."""
    clients = [Client(node, [Call("write", "x", node)], 0.2) for node in (0, 2)]
    clients += final_reads(3, keys=1, start_s=3)
    split = Split(0.1, [0, 1], [2], until_s=1)
    history = simulate(make, 3, clients, faults=[split]).history
    assert [each.outcome for each in history if each.op == "write"] == ["ok", "ok"]
    return [each.result for each in history if each.op == "read"]


def test_of_two_writes_on_two_sides_one_is_lost_or_both_are_kept():
    assert on_both_sides(LastWriterWins) == [2, 2, 2]
    assert on_both_sides(Causal) == [2, 2, 2]
    for siblings in on_both_sides(VersionVectors):
        assert set(siblings) == {0, 2}
