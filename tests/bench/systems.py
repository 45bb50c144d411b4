"""Real stores: from the call to the first write acknowledged, and what follows.

    python tests/bench/systems.py [times]

The targets are 3 s for etcd with three members, 0.5 s for Redis with a replica in sync,
and 1 to 2 s for PostgreSQL. The first of each is dropped: it starts the process server
and imports the clients. "rate" is one client's writes per second, "end" the time from
the end of the block to the last process gone.
"""

import statistics
import sys
import time

from distlab import Call
from distlab.engines import etcd, postgres, redis
from distlab.network import Client

STORES = {
    "etcd, 3 members": lambda: etcd.cluster(3),
    "Redis, 1 replica": lambda: redis.replicated(1),
    "PostgreSQL": postgres.server,
}


def once(make):
    """Return the seconds to the first write, the rate of more, the seconds to end."""
    began = time.perf_counter()
    with make() as store:
        (first,) = store.drive([Client(0, [Call("write", "x", 0)], timeout_s=30)])
        assert first.outcome == "ok"
        first_s = time.perf_counter() - began
        writes = [Call("write", "x", n) for n in range(500)]
        history = list(store.drive([Client(0, writes)]))
        rate = len(history) / (history[-1].end - history[0].start)
        ending = time.perf_counter()
    return first_s, rate, time.perf_counter() - ending


def failover():
    """Return the seconds from the death of etcd's leader to the next write."""
    with etcd.cluster(3) as store:
        leader = store.leader()
        began = time.perf_counter()
        store.kill(leader)
        asked = Client((leader + 1) % 3, [Call("write", "x", 1)], timeout_s=0.5)
        while store.drive([asked]).operations[0].outcome != "ok":
            pass
        return time.perf_counter() - began


def main():
    """Print a table: medians, and of the first write also the slowest."""
    times = int(sys.argv[1]) if sys.argv[1:] else 5
    print(f"{'':18}{'first write':>12}{'slowest':>10}{'rate':>10}{'end':>9}")
    for name, make in STORES.items():
        once(make)
        firsts, rates, ends = zip(*(once(make) for _ in range(times)), strict=True)
        first_s, rate, end_s = map(statistics.median, (firsts, rates, ends))
        row = f"{name:18}{first_s:10.2f} s{max(firsts):8.2f} s{rate:8.0f}/s"
        print(f"{row}{end_s:7.2f} s")
    took_s = statistics.median(failover() for _ in range(times))
    print(f"etcd without its leader: the next write after {took_s:.2f} s")


if __name__ == "__main__":
    main()
