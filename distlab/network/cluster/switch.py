"""The switch's process: every message between two nodes passes through it.

    kernel ── cut these links, deliver so ──▶ switch
    node 0 ── message to 1 ───────────────▶     │  delayed, dropped, duplicated, cut
    node 1 ◀── message from 0 ──────────────────┘

Nodes connect to a Unix socket in the cluster's private folder. A message that has
passed the switch is in the receiver's socket, where the generation of the link still
determines whether it is accepted (`wire`).
"""

import heapq
import itertools
import pickle
import random
import select
import selectors
import socket
import time
from typing import Any, NamedTuple

from distlab.network.cluster.event_log import EventLog
from distlab.network.cluster.wire import (
    ARRIVAL,
    DEPARTURE,
    FROM_CLIENT,
    FROM_NODE,
    FrameSocket,
    LinkGenerations,
    address_in,
)
from distlab.processes import Child, Disconnected

__all__ = ["Switch"]


_LONGEST_S = 3600.0  # the system waits no longer for a delay without a bound


class _UnderWay(NamedTuple):
    due_s: float
    order: int
    src: int
    dst: int
    number: int
    body: bytes


def _delay_s(delivery, draw):
    """Return the delay of one copy: from a distribution, or between two times."""
    delay_s = delivery.delay_s
    drawn = delay_s.draw(draw) if hasattr(delay_s, "draw") else draw.uniform(*delay_s)
    return max(0.0, drawn)


class Switch:
    """The switch: the connected nodes, the messages under way, and the cut links.

    healed_s: the time when each link was last healed: messages from before are dropped.
    """

    def __init__(
        self, child: Child, folder: str, nodes: int, seed: Any, delivery: bytes
    ):
        self.child, self.seed, self.delivery = child, seed, pickle.loads(delivery)
        self.generations = LinkGenerations(child.shared[0], nodes)
        self.log = EventLog(folder, "switch")
        self.nodes, self.in_flight, self.order = {}, [], itertools.count()
        self.cut, self.healed_s, self.last_s, self.random = set(), {}, {}, {}
        self.to_flush = set()  # connections with frames of this round
        self.busy_s = time.monotonic()
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address_in(folder))
        self.listener.listen(nodes)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, self._accept)
        self.selector.register(child, selectors.EVENT_READ, self._obey)

    def live(self) -> None:
        """Pass messages on, until the parent ends this process."""
        self._tell("open")
        while True:
            pause_s = self._pause()
            if pause_s:  # by microseconds; the selector waits for whole milliseconds
                select.select([self.selector], [], [], pause_s)
                pause_s = 0
            for key, _ in self.selector.select(pause_s):
                key.data()
            self._deliver()
            self._flush()

    def _pause(self):
        if not self.in_flight:
            return None
        due_s = self.in_flight[0].due_s - time.monotonic()
        return min(max(0.0, due_s), _LONGEST_S)

    def _tell(self, *words):
        self.child.send(pickle.dumps(words))

    # nodes

    def _accept(self):
        connection = FrameSocket(self.listener.accept()[0])
        greet = lambda: self._greet(connection)  # noqa: E731
        self.selector.register(connection, selectors.EVENT_READ, greet)

    def _greet(self, connection):
        """Read the first frame, a node's number; it may be the node's new process."""
        try:
            number, *frames = connection.read()
        except ValueError:
            return  # not complete yet
        except Disconnected:
            return self._close(connection)
        node = int(number)
        if node in self.nodes:
            self._read(node)
            self._lose(node)
        self.nodes[node] = connection
        self._put(node, b"welcome")
        read = lambda: self._read(node)  # noqa: E731
        self.selector.modify(connection, selectors.EVENT_READ, read)
        for frame in frames:
            self._send_on(node, frame)

    def _read(self, node):
        connection = self.nodes.get(node)
        if connection is None:
            return
        if connection.waiting:
            self.to_flush.add(connection)
        try:
            frames = connection.read()
        except Disconnected:
            return self._lose(node)
        for frame in frames:
            self._send_on(node, frame)

    def _lose(self, node):
        """Remove a node whose process has ended; drop the messages under way to it."""
        connection = self.nodes.pop(node, None)
        if connection is not None:
            self.to_flush.discard(connection)
            self._close(connection)
        self._drop_all(lambda message: message.dst == node)

    def _close(self, connection):
        self.selector.unregister(connection)
        connection.close()

    def _put(self, node, payload):
        connection = self.nodes[node]
        connection.put(payload)
        self.to_flush.add(connection)

    def _flush(self):
        """Send what this round has for each node; watch those without room for it."""
        self.log.flush()
        for connection in self.to_flush:
            connection.flush()
            events = selectors.EVENT_READ
            events |= selectors.EVENT_WRITE if connection.waiting else 0
            key = self.selector.get_key(connection)
            if key.events != events:
                self.selector.modify(connection, events, key.data)
        self.to_flush.clear()

    # messages

    def _send_on(self, src, frame):
        dst, number, sent_s = DEPARTURE.unpack_from(frame)
        body = frame[DEPARTURE.size :]
        link = src, dst
        if link not in self.random:
            self.random[link] = random.Random(f"{self.seed}: {src} to {dst}")
        draw, delivery = self.random[link], self.delivery
        dropped = draw.random() < delivery.loss
        copies = 2 if draw.random() < delivery.duplicate else 1
        delays = [_delay_s(delivery, draw) for _ in range(copies)]
        cut = link in self.cut or sent_s < self.healed_s.get(link, 0.0)
        if cut or dst not in self.nodes or dropped:
            return self._drop(src, number)
        for delay_s in delays:
            self._start(link, number, body, delay_s)

    def _start(self, link, number, body, delay_s):
        due = time.monotonic() + delay_s
        if self.delivery.ordered:
            due = self.last_s[link] = max(due, self.last_s.get(link, 0.0))
        message = _UnderWay(due, next(self.order), *link, number, body)
        heapq.heappush(self.in_flight, message)

    def _deliver(self):
        now = time.monotonic()
        while self.in_flight and self.in_flight[0].due_s <= now:
            _, _, src, dst, number, body = heapq.heappop(self.in_flight)
            generation = self.generations.of(src, dst)
            self._put(dst, ARRIVAL.pack(FROM_NODE, src, number, generation) + body)
            self.busy_s = now

    def _drop(self, src, number):
        self.log.note("drop", time.monotonic(), src, number)

    def _drop_all(self, which):
        gone = [message for message in self.in_flight if which(message)]
        if gone:
            self.in_flight = [one for one in self.in_flight if not which(one)]
            heapq.heapify(self.in_flight)
        for message in gone:
            self._drop(message.src, message.number)

    # requests of the parent

    def _obey(self):
        what, *rest = pickle.loads(self.child.receive())
        getattr(self, f"_on_{what}")(*rest)

    def _on_calls(self, calls):
        """Pass clients' calls to their nodes; a dead node's are dropped."""
        self.busy_s = time.monotonic()
        for node, attempt, request, body in calls:
            if node in self.nodes:
                head = ARRIVAL.pack(FROM_CLIENT, attempt % 2**16, request, 0)
                self._put(node, head + body)

    def _on_links(self, token, cut):
        """Cut these links and no others; report the time when it was done."""
        for link in cut - self.cut:
            self.generations.cut(*link)
        healed, self.cut = self.cut - cut, cut
        now = time.monotonic()
        self.healed_s |= dict.fromkeys(healed, now)
        self._drop_all(lambda message: (message.src, message.dst) in cut)
        self._tell("done", token, now)

    def _on_delivery(self, token, delivery):
        self.delivery = pickle.loads(delivery)
        self._tell("done", token, time.monotonic())

    def _on_quiet(self, token):
        """Report the time since which no message is under way; None if one is."""
        waiting = self.in_flight or any(c.waiting for c in self.nodes.values())
        self._tell("done", token, None if waiting else self.busy_s)
