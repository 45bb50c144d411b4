"""The inside of the switch: every message between two nodes passes through it.

    kernel ── split, heal, loss ──▶ switch
    node 0 ── message to 1 ───────▶   │  delayed, lost, doubled, cut
    node 1 ◀── message from 0 ────────┘

Nodes come in by a Unix socket in the cluster's private folder. A message that has
passed the switch is in the receiver's socket, where a link's generation on the board
still tells whether it may be taken.
"""

import heapq
import itertools
import os
import pickle
import random
import select
import selectors
import socket
import struct
import time
from typing import NamedTuple

from distlab.network.cluster.board import Board
from distlab.network.cluster.journal import Journal
from distlab.network.cluster.stream import Stream
from distlab.network.delivery import Delivery
from distlab.processes import Child, Disconnected

__all__ = ["ARRIVAL", "DEPARTURE", "FROM_CLIENT", "FROM_NODE", "door_in", "switch"]

# What a node puts before a message: to whom, its number, when it was sent.
DEPARTURE = struct.Struct("<HQd")
# What the switch puts before it: from a node or a client, from whom, its number, and
# the generation of the link.
ARRIVAL = struct.Struct("<BHQI")
FROM_NODE, FROM_CLIENT = 0, 1
_MOST_UNDER_WAY = 200_000
_MOST_WAITING_BYTES = 2**26  # for a node that is paused, say


class _OnItsWay(NamedTuple):
    due_s: float
    order: int
    src: int
    dst: int
    number: int
    body: bytes


def door_in(folder: str) -> str:
    """Return the path of the socket at which the switch waits for nodes."""
    return os.path.join(folder, "switch")


def switch(child: Child, setup: dict) -> None:
    """Be the switch, until the owner is gone."""
    _Switch(child, **setup).live()


class _Switch:
    """Who is there, what is on its way, and which links are cut.

    healed_s: when each link was last whole again: what was sent before is lost.
    """

    def __init__(self, child, folder, nodes, seed, delivery):
        self.child, self.seed, self.delivery = child, seed, delivery
        self.board = Board(child.shared[0], nodes)
        self.journal = Journal(folder, "switch")
        self.nodes, self.visitors = {}, set()
        self.on_its_way, self.order = [], itertools.count()
        self.cut, self.healed_s, self.last_s, self.draws = set(), {}, {}, {}
        self.busy_s = time.monotonic()
        self.selector = selectors.DefaultSelector()
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(door_in(folder))
        self.door.listen(nodes)
        self.door.setblocking(False)
        self.selector.register(self.door, selectors.EVENT_READ, self._let_in)
        self.selector.register(child, selectors.EVENT_READ, self._obey)

    def live(self):
        self._tell("open")
        while True:
            # By microseconds; the selector itself waits for whole milliseconds.
            select.select([self.selector], [], [], self._pause())
            for key, _ in self.selector.select(0):
                key.data()
            self._deliver()

    def _pause(self):
        if not self.on_its_way:
            return None
        return max(0.0, self.on_its_way[0].due_s - time.monotonic())

    def _tell(self, *words):
        self.child.send(pickle.dumps(words))

    # nodes

    def _let_in(self):
        stream = Stream(self.door.accept()[0])
        self.visitors.add(stream)
        self._wait_for(stream, lambda: self._greet(stream))

    def _greet(self, stream):
        """Take a visitor's first frame, its number; it may be a node's new process."""
        try:
            number, *frames = stream.read()
        except ValueError:
            return  # not here yet
        except Disconnected:
            return self._let_go(stream)
        node = int(number)
        if node in self.nodes:
            self._hear(node)
            self._lose(node)
        self.visitors.discard(stream)
        self.nodes[node] = stream
        stream.send(b"welcome")
        self._wait_for(stream, lambda: self._hear(node))
        for frame in frames:
            self._send_on(node, frame)

    def _wait_for(self, stream, what):
        """Have `what` called when a stream has something, or room for what waits."""
        if stream in self.selector.get_map():
            self.selector.unregister(stream)
        self.selector.register(stream, selectors.EVENT_READ, what)

    def _hear(self, node):
        stream = self.nodes.get(node)
        if stream is None:
            return
        stream.flush()
        self._look_for_room(stream)
        try:
            frames = stream.read()
        except Disconnected:
            return self._lose(node)
        for frame in frames:
            self._send_on(node, frame)

    def _lose(self, node):
        """A node's process is gone, and with it all that was on its way to it."""
        stream = self.nodes.pop(node, None)
        if stream is not None:
            self._let_go(stream)
        self._drop_all(lambda way: way.dst == node, "dead")

    def _let_go(self, stream):
        self.visitors.discard(stream)
        self.selector.unregister(stream)
        stream.close()

    def _look_for_room(self, stream):
        events = selectors.EVENT_READ
        events |= selectors.EVENT_WRITE if stream.waiting else 0
        key = self.selector.get_key(stream)
        if key.events != events:
            self.selector.modify(stream, events, key.data)

    # messages

    def _send_on(self, src, frame):
        dst, number, sent_s = DEPARTURE.unpack_from(frame)
        body = frame[DEPARTURE.size :]
        link = src, dst
        draw = self.draws.get(link)
        if draw is None:
            draw = self.draws[link] = random.Random(f"{self.seed}: {src} to {dst}")
        lost, twice = draw.random(), draw.random()
        delays = (
            draw.uniform(*self.delivery.delay_s),
            draw.uniform(*self.delivery.delay_s),
        )
        if link in self.cut or sent_s < self.healed_s.get(link, 0.0):
            return self._drop(src, dst, number, "split")
        if dst not in self.nodes:
            return self._drop(src, dst, number, "dead")
        if lost < self.delivery.loss:
            return self._drop(src, dst, number, "lost")
        self._start(link, number, body, delays[0])
        if twice < self.delivery.duplicate:
            self._start(link, number, body, delays[1])

    def _start(self, link, number, body, delay_s):
        due = time.monotonic() + delay_s
        if self.delivery.ordered:
            due = self.last_s[link] = max(due, self.last_s.get(link, 0.0))
        way = _OnItsWay(due, next(self.order), *link, number, body)
        heapq.heappush(self.on_its_way, way)
        if len(self.on_its_way) == _MOST_UNDER_WAY:
            self._tell("flooded", link[0], _MOST_UNDER_WAY)

    def _deliver(self):
        now = time.monotonic()
        while self.on_its_way and self.on_its_way[0].due_s <= now:
            way = heapq.heappop(self.on_its_way)
            generation = self.board.generation(way.src, way.dst)
            head = ARRIVAL.pack(FROM_NODE, way.src, way.number, generation)
            if not self._hand_over(way.dst, head + way.body):
                self._drop(way.src, way.dst, way.number, "full")
            self.busy_s = now

    def _hand_over(self, node, payload):
        """Pass something on to a node that is there; return whether it had room."""
        stream = self.nodes[node]
        if len(stream.waiting) > _MOST_WAITING_BYTES:
            return False
        stream.send(payload)
        self._look_for_room(stream)
        return True

    def _drop(self, src, dst, number, why):
        self.journal.note("drop", time.monotonic(), src, dst, number, why)

    def _drop_all(self, lost, why):
        gone = [way for way in self.on_its_way if lost(way)]
        if gone:
            self.on_its_way = [way for way in self.on_its_way if not lost(way)]
            heapq.heapify(self.on_its_way)
        for way in gone:
            self._drop(way.src, way.dst, way.number, why)

    # what the owner says

    def _obey(self):
        what, *rest = pickle.loads(self.child.receive())
        getattr(self, f"_on_{what}")(*rest)

    def _on_call(self, node, request, body):
        """Hand a client's request to its node; a dead node's are lost."""
        self.busy_s = time.monotonic()
        if node in self.nodes:
            head = ARRIVAL.pack(FROM_CLIENT, 0, request, 0)
            self._hand_over(node, head + body)

    def _on_links(self, token, cut):
        """Cut these links and no others; tell when it was done."""
        for link in cut - self.cut:
            self.board.cut(*link)
        healed, self.cut = self.cut - cut, cut
        now = time.monotonic()
        self.healed_s |= dict.fromkeys(healed, now)
        self._drop_all(lambda way: (way.src, way.dst) in cut, "split")
        self._tell("done", token, now)

    def _on_delivery(self, token, delivery: Delivery):
        self.delivery = delivery
        self._tell("done", token, time.monotonic())

    def _on_quiet(self, token):
        """Tell since when nothing is under way; None if something is."""
        waiting = self.on_its_way or any(s.waiting for s in self.nodes.values())
        self._tell("done", token, None if waiting else self.busy_s)
