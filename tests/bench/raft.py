"""Raft on real processes beside etcd: commands a second, and a leader's death.

    python tests/bench/raft.py

Both have three members on this machine, whose disks have a write before it is
acknowledged. Clients of both are this process's; those of etcd speak JSON over HTTP.
"""

import statistics
import time

from distlab import Call, network
from distlab.agree.raft import RaftStore
from distlab.engines import etcd
from distlab.network import Client, Cluster, Delivery

SECONDS, WARM_S, DEATHS, QUIET_S = 3.0, 1.0, 9, 20.0
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


def elections(seconds):
    """Return how many leaders follow the first while nothing fails."""
    wait = Client(0, [Call("write", "x", 1)], start_s=seconds, retries=9)
    how = {"delivery": AT_ONCE, "timeout_s": seconds + 5}
    outcome = network.run(RaftStore, 3, wait, **how)
    events = outcome.trace.events
    return sum(event.label.startswith("leader of") for event in events) - 1


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
    print(f"{f'elections in {QUIET_S:.0f} quiet seconds':34}{elections(QUIET_S):9}")


if __name__ == "__main__":
    main()
