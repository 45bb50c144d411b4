"""Gossip: rounds, messages and what survives loss, crashes and a network of one."""

import pytest

from distlab.agree.gossip import (
    PullGossip,
    PushGossip,
    PushPullGossip,
    in_rounds,
    messages_per_round,
    push_pull_rounds,
    push_rounds,
    spread,
)
from distlab.faults import Crash
from distlab.network import Delivery, simulate


def rounds(make, nodes, seeds, until_s=40.5, **how):
    """Return the rounds until all have heard: the mean over some runs."""
    taken = []
    for seed in range(seeds):
        counts = spread(simulate(make, nodes, seed=seed, until_s=until_s, **how).nodes)
        assert counts[-1] == nodes
        taken.append(len(counts) - 1)
    return sum(taken) / len(taken)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (PushGossip, 1 + 4 / 3),  # 2 know after one; then both miss the third with 1/4
        (PullGossip, (1 + 1 / 2) / (3 / 4)),  # nobody, one, or two ask node 0
        (
            PushPullGossip,
            1 + 1 / 2,
        ),  # node 0 tells one; the other has asked it, or asks
    ],
)
def test_the_mean_rounds_of_three_nodes_are_those_of_the_markov_chain(make, expected):
    assert rounds(make, 3, 150, 12.5) == pytest.approx(expected, abs=0.2)


def test_a_thousand_nodes_hear_by_push_in_log2_and_ln_rounds_and_both_ways_in_half():
    pushed = rounds(PushGossip, 1000, 1, 22.5)
    both = rounds(PushPullGossip, 1000, 1, 12.5)
    assert push_rounds(1000) == pytest.approx(9.97 + 6.91, abs=0.01)
    assert push_pull_rounds(1000) == pytest.approx(6.29 + 1.93, abs=0.01)
    assert pushed <= push_rounds(1000) + 2
    assert both / pushed == pytest.approx(1 / 2, abs=0.1)


def test_push_costs_what_it_has_spread_and_anti_entropy_goes_on():
    quiet = simulate(PullGossip, 50, until_s=30.5)
    assert messages_per_round(quiet.trace)[-1] < 50, "pull ends when all have heard"
    pushed = simulate(PushGossip, 50, until_s=9.5)
    known, sent = spread(pushed.nodes), messages_per_round(pushed.trace)
    assert sent[1:] == (known + [50] * 9)[:9], "all that have heard tell one other"
    assert in_rounds(pushed.trace).rounds() == 9
    both = simulate(PushPullGossip, 50, until_s=30.5)
    assert messages_per_round(both.trace)[-1] == 50


def test_loss_and_dead_nodes_slow_it_and_do_not_stop_it():
    lossy = {"delivery": Delivery(loss=0.5)}
    assert rounds(PushGossip, 64, 3, **lossy) > rounds(PushGossip, 64, 3)
    dead = [Crash(node, 0.1) for node in range(100, 200)]
    nodes = simulate(PushPullGossip, 200, faults=dead, until_s=30.5).nodes
    assert nodes[100:] == [None] * 100
    assert spread(nodes)[-1] == 100


def test_a_node_that_starts_again_still_knows_or_hears_in_the_round_that_it_is():
    absent = Crash(7, 0.5, 20.7)
    late = simulate(PushGossip, 8, until_s=40.5, faults=absent).nodes
    assert late[7].heard >= 20
    restart = [Crash(node, 15.5, 16.7) for node in range(7)]
    nodes = simulate(PushGossip, 8, until_s=18.5, faults=[absent, *restart]).nodes
    assert [node.heard for node in nodes[:7]] == [node.heard for node in late[:7]]


@pytest.mark.parametrize("make", [PushGossip, PullGossip, PushPullGossip])
def test_one_node_alone_knows_and_sends_nothing(make):
    alone = simulate(make, 1, until_s=5.5)
    assert spread(alone.nodes) == [1]
    assert messages_per_round(alone.trace) == [0]
    assert push_rounds(1) == push_pull_rounds(1) == 0
