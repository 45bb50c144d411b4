"""Raft on real processes beside etcd: commands a second, and a leader's death.

    python tests/bench/raft.py
    python tests/bench/raft.py minutes=60      # only elections while nothing fails

Both have three members on this machine, whose disks have a write before it is
acknowledged. Clients of both are this process's; those of etcd speak JSON over HTTP.

Measured on two cores beside other work, of load average 1.0 to 24.3 (mean 11.7): 32
elections in 60 minutes, with time-outs of 150 to 300 ms, and 3507 of 3507 writes.
"""

import os
import statistics
import sys
import time

from distlab import Call, network
from distlab.agree.raft import RaftStore
from distlab.engines import etcd
from distlab.network import Client, Cluster, Delivery

SECONDS, WARM_S, DEATHS, QUIET_MINUTES = 3.0, 1.0, 9, 1 / 3
AT_ONCE = Delivery((0.0, 0.0))


def endless(key):
    """Return a function that writes to a key, on and on, until the time is over."""

    def calls():
        began, number = time.monotonic(), 0
        while time.monotonic() < began + SECONDS:
            number += 1
            yield Call("write", key, number)

    return calls


def writers(count, **how):
    return [Client(n % 3, endless(f"k{n}"), **how) for n in range(count)]


def a_second(history):
    """Return acknowledged writes a second, and the median time of one in ms."""
    done = [op for op in history if op.outcome == "ok"]
    median_s = statistics.median(op.end - op.start for op in done)
    span_s = max(op.end for op in done) - min(op.start for op in done)
    return len(done) / span_s, 1000 * median_s


def of_raft(count):
    clients = writers(count, start_s=WARM_S, retries=9)
    how = {"delivery": AT_ONCE, "timeout_s": WARM_S + SECONDS + 1}
    return a_second(network.run(RaftStore, 3, clients, **how).history)


def of_etcd(count):
    with etcd.cluster(3, fsync=True) as store:
        store.drive([Client(0, [Call("write", "x", 1)])])
        return a_second(store.drive(writers(count)))


def leader_of(cluster):
    """Return the node that acknowledges a write, after one has."""
    while True:
        for node in range(cluster.nodes):
            alive = cluster.states[node] == "running"
            if alive and cluster.call(node, "write", "x", 1).outcome == "ok":
                return node


def after_deaths():
    """Return the seconds from each kill -9 of the leader to the next write."""
    took = []
    with Cluster(RaftStore, 3, delivery=AT_ONCE) as cluster:
        for _ in range(DEATHS):
            leader = leader_of(cluster)
            began = time.monotonic()
            cluster.kill(leader)
            leader_of(cluster)
            took.append(time.monotonic() - began)
            cluster.restart(leader)
            leader_of(cluster)
    return took


def quiet(minutes):
    """Return (loads at elections after the first, writes, loads of each second)."""
    until, loads = time.monotonic() + 60 * minutes, []

    def calls():
        while time.monotonic() < until:
            loads.append(os.getloadavg()[0])
            yield Call("write", "x", len(loads))

    client = Client(0, calls, start_s=WARM_S, pause_s=1.0, retries=9)
    how = {"delivery": AT_ONCE, "timeout_s": 60 * minutes + 60}
    outcome = network.run(RaftStore, 3, client, **how)
    events = outcome.trace.events
    led = [e.start for e in events if e.label.startswith("leader of")][1:]
    at = [loads[min(int(at_s), len(loads) - 1)] for at_s in led]
    return at, sum(op.outcome == "ok" for op in outcome.history), loads


def main():
    print(f"{'three members, fsync':34}{'Raft':>9}{'etcd':>9}{'ratio':>8}")
    for count in (1, 8):
        raft, peer = of_raft(count), of_etcd(count)
        words = f"writes a second, {count} client{'s' * (count > 1)}"
        print(f"{words:34}{raft[0]:9.0f}{peer[0]:9.0f}{raft[0] / peer[0]:8.2f}")
        print(f"{'   median of one, ms':34}{raft[1]:9.2f}{peer[1]:9.2f}")
    took = sorted(after_deaths())
    print(
        f"{'kill -9 of the leader to a write':34}{statistics.median(took):9.2f} s",
        end="",
    )
    print(f" median, {took[0]:.2f} to {took[-1]:.2f} of {DEATHS}")
    print_quiet(QUIET_MINUTES)


def print_quiet(minutes):
    at, writes, loads = quiet(minutes)
    print(f"{f'elections in {minutes:g} quiet minutes':34}{len(at):9}", end="")
    print(f" beside {writes} of {len(loads)} writes; load average", end=" ")
    print(f"{min(loads):.1f} to {max(loads):.1f}, mean {statistics.mean(loads):.1f}")
    print(*(f"{load:.1f}" for load in at), sep=", ")


if __name__ == "__main__":
    if sys.argv[1:]:
        print_quiet(float(sys.argv[1].removeprefix("minutes=")))
    else:
        main()
