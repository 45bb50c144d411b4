"""Nodes for the tests of clusters."""

import time
from collections import Counter
from typing import NamedTuple

from distlab.network import (
    Append,
    Client,
    Node,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
    Sync,
)
from distlab.trace import Call


class Echo(Node):
    """Answers what it is asked with what it was asked; refuses "no"."""

    def on_client(self, request, call):
        if call.op == "no":
            return [Refuse(request, "not today")]
        return [Reply(request, call.value)]


class Ask(NamedTuple):
    """One node asks another to store a value, or what it has."""

    number: int
    version: tuple | None
    value: object


class Told(NamedTuple):
    """What the other has."""

    number: int
    version: tuple
    value: object


class Majority(Node):
    """One register on a majority of nodes: reads write back what they return."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.version, self.value = (0, -1), None
        self.most = (len(peers) + 1) // 2 + 1
        self.open = {}

    def on_start(self, saved):
        self.version, self.value = saved.get("register", ((0, -1), None))

    def on_client(self, request, call):
        self.open[request] = [call, [], False]
        return self.all(Ask(request, None, None))

    def all(self, message):
        return [Send(node, message) for node in (self.me, *self.peers)]

    def on_message(self, sender, message):
        if isinstance(message, Ask):
            if message.version is not None and message.version > self.version:
                self.version, self.value = message.version, message.value
                yield Save("register", (self.version, self.value))
            stored = message.version is not None
            described = self.version, self.value
            yield Send(
                sender, Told(message.number, (*described[0], stored), described[1])
            )
        elif message.number in self.open:
            yield from self.count(message)

    def count(self, described):
        call, heard, storing = self.open[described.number]
        *version, stored = described.version
        if stored != storing:
            return
        heard.append((tuple(version), described.value))
        if len(heard) < self.most:
            return
        if storing:
            del self.open[described.number]
            yield Reply(described.number, self.open_value(call, heard))
            return
        version, value = max(heard, key=lambda one: one[0])
        if call.op == "write":
            version, value = (version[0] + 1, self.me), call.value
        self.open[described.number] = [call._replace(value=value), [], True]
        yield from self.all(Ask(described.number, version, value))

    def open_value(self, call, heard):
        return call.value if call.op == "read" else None


class Gossip(Node):
    """Every few milliseconds sends its peers the next number; counts what comes."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.next, self.heard, self.order = 0, Counter(), {}

    def on_start(self, saved):
        return [SetTimer("again", 0.002)]

    def on_timer(self, name):
        self.next += 1
        sends = [Send(peer, ("number", self.next)) for peer in self.peers]
        return [*sends, SetTimer("again", 0.002)]

    def on_message(self, sender, message):
        self.heard[sender] += 1
        self.order.setdefault(sender, []).append(message[1])

    def on_client(self, request, call):
        return [Reply(request, dict(self.heard))]


class Counting(Node):
    """Counts calls, saves the count before it answers, and keeps one in memory."""

    def on_start(self, saved):
        self.saved, self.unsaved = saved.get("count", 0), 0

    def on_client(self, request, call):
        self.unsaved += 1
        if call.op == "read":
            return [Reply(request, (self.saved, self.unsaved))]
        self.saved += 1
        return [Save("count", self.saved), Reply(request, self.saved)]


class DurableLog(Node):
    """Appends to a log on its disk, and answers once the disk has written it."""

    def on_start(self, saved):
        self.log, self.tokens, self.waiting = saved.get("log", []), [], {}

    def on_client(self, request, call):
        if call.op == "read":
            return [Reply(request, self.log)]
        self.log.append(call.value)
        writes = [Append("log", call.value)]
        if call.op == "append without sync":
            return [*writes, Reply(request)]
        token = len(self.log)
        self.waiting[token] = request
        return [*writes, Sync(token)]

    def on_synced(self, token):
        self.tokens.append(token)
        return [Reply(self.waiting.pop(token), token)]


def patient(node, calls, **more):
    """Return a client that waits for its answers also on a slow machine."""
    return Client(node, calls, timeout_s=30, **more)


def described(cluster, node, op="read"):
    """Return what a node that is alive answers, also on a slow machine."""
    return cluster.call(node, op, timeout_s=30).result


def until(condition, within_s=30):
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def writes(count, key="x"):
    """Return the calls of a client that writes 0, 1, 2, ..."""
    return [Call("write", key, number) for number in range(count)]
