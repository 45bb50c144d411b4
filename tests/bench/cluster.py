"""How many requests a cluster answers, beside the plain round trip of a socket pair.

    python tests/bench/cluster.py           # seconds: a table
    python tests/bench/cluster.py profile   # where each process's time goes

A plain round trip is a frame of the same size that one process sends another, which
sends it back: what no request can be faster than. A request passes the switch, the node
and the kernel, and is noted by each; one of a majority of three crosses six more links.
"""

import multiprocessing
import socket
import time

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


def requests(make, nodes, clients, delivery):
    """Return requests answered in a second, and the median time of one, in ms."""

    def endless():
        while True:
            yield Call("write", "x", 1)

    asking = [Client(number % nodes, endless) for number in range(clients)]
    how = {"delivery": delivery, "timeout_s": SECONDS}
    outcome = network.run(make, nodes, asking, **how)
    took = sorted(o.end - o.start for o in outcome.history if o.outcome == "ok")
    return len(took) / SECONDS, 1000 * took[len(took) // 2]


def main():
    network.run(Echo, 1, Client(0, [Call("write")]))
    began = time.monotonic()
    network.run(Echo, 3, Client(0, [Call("write")]))
    print(f"{'three nodes: start, one request, end':44}", end="")
    print(f"{1000 * (time.monotonic() - began):8.0f} ms")
    plain = round_trips()
    print(f"{'plain round trip of a socket pair':44}{plain:8.0f} /s", end="")
    print(f"{1000 / plain:9.3f} ms")
    rows = [
        ("echo, 1 node, 1 client", Echo, 1, 1, AT_ONCE),
        ("echo, 3 nodes, 6 clients", Echo, 3, 6, AT_ONCE),
        ("majority of 3, 1 client, no delay", Majority, 3, 1, AT_ONCE),
        ("majority of 3, 6 clients, no delay", Majority, 3, 6, AT_ONCE),
        ("majority of 3, 6 clients, 1 to 3 ms a message", Majority, 3, 6, Delivery()),
    ]
    for name, make, nodes, clients, delivery in rows:
        rate, median_ms = requests(make, nodes, clients, delivery)
        print(f"{name:44}{rate:8.0f} /s{median_ms:9.2f} ms", end="")
        print(f"   1/{plain / rate:.0f} of plain")


if __name__ == "__main__":
    main()
