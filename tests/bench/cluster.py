"""How many requests a cluster answers, beside the plain round trip of a socket pair.

    python tests/bench/cluster.py

A plain round trip is a frame of the same size that one process sends another, which
sends it back: what no request can be faster than. A request passes the switch, the node
and the kernel, and is noted by each; one of a majority of three crosses six more links.
A command of the log waits for two of three disks. The last columns are processor time
for one request, in microseconds: of the kernel, of the switch, of all nodes.
"""

import multiprocessing
import os
import socket
import tempfile
import time

import psutil

from distlab import Call, network
from distlab.network import Append, Client, Delivery, Node, Reply, Send, Sync

SECONDS = 2.0
AT_ONCE = Delivery((0.0, 0.0))


class Echo(Node):
    """Answers at once."""

    def on_client(self, request, call):
        return [Reply(request, call.value)]


class Majority(Node):
    """Asks all three nodes, and answers when two have."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.described = {}

    def on_client(self, request, call):
        self.described[request] = 0
        return [Send(node, ("ask", request)) for node in (self.me, *self.peers)]

    def on_message(self, sender, message):
        what, request = message
        if what == "ask":
            return [Send(sender, ("described", request))]
        self.described[request] += 1
        return [Reply(request)] if self.described[request] == 2 else []


class Log(Node):
    """Node 0 replicates its log: it answers when two of three disks have an entry."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.durable_at, self.requests, self.length = {}, {}, 0

    def on_client(self, request, call):
        self.length += 1
        self.durable_at[self.length], self.requests[self.length] = 0, request
        entry = self.length, request, call.key, call.value
        sends = [Send(peer, ("append", *entry)) for peer in self.peers]
        return [Append("log", entry), *sends, Sync(self.length)]

    def on_message(self, sender, message):
        what, at, *entry = message
        if what == "append":
            return [Append("log", (at, *entry)), Sync(at)]
        return self.durable(at)

    def on_synced(self, at):
        return self.durable(at) if self.me == 0 else [Send(0, ("durable", at))]

    def durable(self, at):
        self.durable_at[at] += 1
        return [Reply(self.requests.pop(at))] if self.durable_at[at] == 2 else []


def echo(sock):
    while data := sock.recv(4096):
        sock.sendall(data)


def round_trips():
    """Return how often in a second a frame goes to another process and back."""
    ours, theirs = socket.socketpair()
    other = multiprocessing.Process(target=echo, args=(theirs,))
    other.start()
    theirs.close()
    count, until = 0, time.monotonic() + SECONDS / 2
    while time.monotonic() < until:
        ours.sendall(b"x" * 64)
        ours.recv(4096)
        count += 1
    ours.close()
    other.kill()
    other.join()
    return 2 * count / SECONDS


def syncs():
    """Return how often in a second a process appends and waits for the device."""
    with tempfile.TemporaryFile() as file:
        count, until = 0, time.monotonic() + SECONDS / 2
        while time.monotonic() < until:
            os.write(file.fileno(), b"x" * 64)
            os.fdatasync(file.fileno())
            count += 1
    return 2 * count / SECONDS


def used_s(cluster):
    """Return the processor time of the kernel, the switch, and all nodes, so far."""
    nodes = [psutil.Process(pid) for pid in cluster.pids]
    (switch,) = [one for one in nodes[0].parent().children() if one not in nodes]
    times = [one.cpu_times() for one in (psutil.Process(), switch, *nodes)]
    kernel, switch, *nodes = (one.user + one.system for one in times)
    return kernel, switch, sum(nodes)


def requests(make, nodes, clients, delivery):
    """Return requests answered in a second, the median in ms, and processor times."""

    def endless():
        while True:
            yield Call("write", "x", 1)

    spread = 1 if make is Log else nodes
    asking = [Client(number % spread, endless) for number in range(clients)]
    with network.Cluster(make, nodes, delivery=delivery) as cluster:
        before = used_s(cluster)
        cluster.start(asking)
        time.sleep(SECONDS)
        cluster.stop_clients()
        after = used_s(cluster)
        took = [o.end - o.start for o in cluster.history if o.outcome == "ok"]
    each = [1e6 * (b - a) / len(took) for a, b in zip(before, after, strict=True)]
    return len(took) / SECONDS, 1000 * sorted(took)[len(took) // 2], each


def main():
    network.run(Echo, 1, Client(0, [Call("write")]))
    began = time.monotonic()
    network.run(Echo, 3, Client(0, [Call("write")]))
    print(f"{'three nodes: start, one request, end':44}", end="")
    print(f"{1000 * (time.monotonic() - began):8.0f} ms")
    plain = round_trips()
    print(f"{'plain round trip of a socket pair':44}{plain:8.0f} /s", end="")
    print(f"{1000 / plain:9.3f} ms")
    print(f"{'plain appends, each with a wait for the disk':44}{syncs():8.0f} /s")
    rows = [
        ("echo, 1 node, 1 client", Echo, 1, 1, AT_ONCE),
        ("echo, 3 nodes, 6 clients", Echo, 3, 6, AT_ONCE),
        ("majority of 3, 1 client, no delay", Majority, 3, 1, AT_ONCE),
        ("majority of 3, 6 clients, no delay", Majority, 3, 6, AT_ONCE),
        ("majority of 3, 6 clients, 1 to 3 ms a message", Majority, 3, 6, Delivery()),
        ("log on 3 disks, 1 client, no delay", Log, 3, 1, AT_ONCE),
        ("log on 3 disks, 8 clients, no delay", Log, 3, 8, AT_ONCE),
    ]
    for name, make, nodes, clients, delivery in rows:
        rate, median_ms, each = requests(make, nodes, clients, delivery)
        print(f"{name:44}{rate:8.0f} /s{median_ms:9.2f} ms", end="")
        print(f"   1/{plain / rate:.0f} of plain", *(f"{one:5.0f}" for one in each))


if __name__ == "__main__":
    main()
