"""Gossip on the virtual clock: rounds against their formulas, processor time, memory.

Rounds are means over runs with other seeds. Seconds are those of the processor, for one
run and its trace; memory is the peak of the whole process until then.
Run: python tests/bench/gossip.py
"""

import resource
import time

from distlab.agree.gossip import (
    PushGossip,
    PushPullGossip,
    messages_per_round,
    push_pull_rounds,
    push_rounds,
    spread,
)
from distlab.network import simulate

CASES = [(PushGossip, push_rounds), (PushPullGossip, push_pull_rounds)]


def measured(make, nodes, most, seed):
    """Return (rounds, messages, seconds) of a run, which ends after `most` rounds."""
    began = time.process_time()
    run = simulate(make, nodes, seed=seed, until_s=most + 0.5)
    counts, sent = spread(run.nodes), sum(messages_per_round(run.trace))
    assert counts[-1] == nodes, f"{nodes - counts[-1]} nodes have not heard"
    return len(counts) - 1, sent, time.process_time() - began


def table():
    """Print a row for each number of nodes and each protocol."""
    print(
        f"{'gossip':16}{'nodes':>8}{'rounds':>8}{'formula':>9}{'messages':>11}", end=""
    )
    print(f"{'s':>7}{'GB':>7}")
    for nodes, runs in [(100, 20), (1_000, 5), (10_000, 3)]:
        for make, formula in CASES:
            most = formula(nodes) + 5
            rows = [measured(make, nodes, most, seed) for seed in range(runs)]
            rounds, sent, seconds = (
                sum(column) / runs for column in zip(*rows, strict=True)
            )
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"{make.__name__:16}{nodes:8,}{rounds:8.1f}{formula(nodes):9.1f}",
                end="",
            )
            print(f"{sent:11,.0f}{seconds:7.2f}{peak:7.2f}")


if __name__ == "__main__":
    table()
