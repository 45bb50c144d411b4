"""Simulated nodes: messages a second on one core, and how long a search takes.

The peer of the simulator is a loop that hands each message to its node's method and
does nothing else: no clock, no delay, no check, no copy, no trace. Seconds are those of
the processor. Run: python tests/bench/network.py
"""

import sys
import time
from collections import deque
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from protocols import (
    BothSides,
    Counts,
    ForgetsToSave,
    Gossip,
    LastToCome,
    Majority,
    ReadsOne,
    all_alike,
    counts_well,
    nothing_stale,
    one_holder,
)
from raft import Raft, monitors

from distlab import Call
from distlab.agree import Quorum, Register, check_linearizable
from distlab.network import Client, Delivery, fuzz, search
from distlab.network.node_host import NodeHost
from distlab.network.virtual_clock import SimulatedRun

NODES, SECONDS = 50, 4.0


def bare():
    """Return how many messages a plain loop hands over, and its seconds."""
    everyone = range(NODES)
    nodes = [Gossip(n, [p for p in everyone if p != n]) for n in everyone]
    under_way = deque()
    for me, node in enumerate(nodes):
        NodeHost(node, me, NODES)
        under_way += [(me, send) for send in node.on_start({})]
    count, began = 100_000, time.process_time()
    for _ in range(count):
        sender, (to, message) = under_way.popleft()
        under_way += [(to, send) for send in nodes[to].on_message(sender, message)]
    return count, time.process_time() - began


def simulated(traced):
    """Return how many messages are simulated, and in how many seconds."""
    run = SimulatedRun(Gossip, NODES, [], (), Delivery(), 0)
    run.traced = traced
    began = time.process_time()
    run.run(SECONDS)
    if traced:
        run.outcome()
    return run.messages, time.process_time() - began


def messages():
    """Print how many messages go through in a second."""
    print(f"{'gossip of 50 nodes':32}{'messages':>10}{'s':>7}{'a second':>10}")
    for name, measured in [
        ("a plain loop", bare),
        ("simulated, not traced", partial(simulated, False)),
        ("simulated", partial(simulated, True)),
    ]:
        count, spent_s = min((measured() for _ in range(3)), key=lambda both: both[1])
        print(f"{name:32}{count:10,}{spent_s:7.2f}{count / spent_s:10,.0f}")


def linearizable(outcome):
    """Judge the history of a register."""
    return check_linearizable(outcome.history, Register())


def searches():
    """Print what is searched, for how long, and how short what is found is."""
    write, read = Call("write", "x", 1), Call("read", "x")
    lock, add = Call("lock"), Call("add", None, 5)
    readers = [Client(0, [write]), Client(1, [read]), Client(2, [read])]
    lockers = [Client(0, [lock]), Client(1, [lock])]
    counters = [Client(0, [add]), Client(1, [Call("read")])]
    writers = [Client(0, [write, Call("write", "x", 2)])]
    reads_one = partial(Quorum, reads=1, write_back=False)
    no_write_back = partial(Quorum, write_back=False)
    cases = [
        ("stale read", ReadsOne, readers, nothing_stale, {}),
        ("the same, quorum store", reads_one, readers, linearizable, {}),
        ("no write back, quorum store", no_write_back, readers, linearizable, {}),
        ("lost at a crash", ForgetsToSave, readers, nothing_stale, {"crashes": 1}),
        ("split brain", BothSides, lockers, one_holder, {"splits": 1}),
        ("duplicated", Counts, counters, counts_well, {"duplicates": 1}),
        ("reordered", LastToCome, writers, all_alike, {"settled": True}),
        ("right, two clients", Majority, readers[:2], nothing_stale, {}),
        ("right, with a crash", Majority, readers[:2], nothing_stale, {"crashes": 1}),
    ]
    print(f"\n{'search':30}{'s':>7}{'steps':>7}  explored")
    for name, make, clients, check, faults in cases:
        began = time.process_time()
        found = search(make, 3, clients, check, **faults)
        spent_s = time.process_time() - began
        steps = len(found.schedule) if found else "none"
        print(f"{name:30}{spent_s:7.2f}{steps:>7}  {found.explored}")


def fuzzed():
    """Print how many random runs of a Raft there are in a second, and of what size."""
    calls = [Call("write", "x", n) for n in range(5)]
    clients = [Client(n, calls, retries=3) for n in range(3)]
    faults = {"crashes": 6, "splits": 2, "cuts": 2, "loss": 0.3, "duplicates": 0.1}
    began = time.process_time()
    done = fuzz(Raft, 3, clients, monitors=monitors(), runs=300, within_s=60, **faults)
    spent_s = time.process_time() - began
    print(f"\nfuzz: {done.explored.runs / spent_s:,.0f} runs a second: {done.explored}")


if __name__ == "__main__":
    messages()
    searches()
    fuzzed()
