"""A process of a cluster: it runs a node, or the switch.

    connection to the switch ── message, client's call ──▶ ┐
    timers of its own ───────────────────────────────────▶ ├ a node's method ─▶ effects
    channel from the kernel ── "go", "copy yourself" ────▶ ┘

Events are processed one after another, each effect before the next. The log has a line
for each, written first, with the time on the one clock of this machine.
"""

import heapq
import itertools
import pickle
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import cloudpickle

from distlab.calls.serialize import unpack
from distlab.errors import InvalidArgument, NodeFailed
from distlab.network.cluster.disk import Disk, serialize
from distlab.network.cluster.event_log import EventLog
from distlab.network.cluster.switch import switch
from distlab.network.cluster.wire import (
    ARRIVAL,
    DEPARTURE,
    FROM_CLIENT,
    FrameSocket,
    LinkGenerations,
    address_in,
)
from distlab.network.describe import describe, describe_response, shorten
from distlab.network.node import (
    CancelTimer,
    Note,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
)
from distlab.network.node_diagnosis import payload_of
from distlab.network.node_host import NodeHost, make_node
from distlab.network.watchdog import Watchdog
from distlab.processes import Child, Disconnected

__all__ = ["main"]

# A message's number is the k-th of its node's process, which is the i-th: i * this + k.
_PER_PROCESS = 2**32
_MOST_TO_ITSELF = 100  # messages that are taken before others are read again


def main(child: Child) -> None:
    """Run the switch, or the node that the parent's first frame describes."""
    what, setup = pickle.loads(child.receive())
    if what == "switch":
        switch(child, setup)
    else:
        _NodeProcess(child, **setup).live()


class _NodeProcess:
    """A node, from the start of its process to a SIGKILL."""

    def __init__(self, child, folder, disk, make, me, nodes, seed, restarts):
        self.child, self.me, self.nodes = child, me, nodes
        self.make, self.seed, self.restarts = make, seed, restarts
        self.generations = LinkGenerations(child.shared[0], nodes)
        self.log = EventLog(folder, f"node{me}")
        self.disk = Disk(disk)
        self.numbers = itertools.count(restarts * _PER_PROCESS + 1)
        self.timers, self.due, self.order = {}, [], itertools.count()
        self.to_itself = deque()
        self.calls = {}
        self.watchdog = Watchdog()
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(address_in(folder))
        self.connection = FrameSocket(sock)
        self.connection.send(str(me).encode())
        select.select([self.connection], [], [])
        self.connection.read()  # the switch's welcome

    def live(self):
        try:
            with self.watchdog:
                self._live()
        except NodeFailed as error:
            self._tell("failed", payload_of(error))
        except InvalidArgument as error:
            self._tell("refused", str(error))
        self._wait_for_the_end()

    def _wait_for_the_end(self):
        while True:
            self.child.receive()  # until the parent ends this process

    def _live(self):
        make = unpack(self.make)[0]
        node = self._watched(make_node, make, self.me, self.nodes)
        how = {"seed": f"{self.seed} {self.restarts}", "restarted": self.restarts > 0}
        self.host = NodeHost(node, self.me, self.nodes, **how)
        self._tell("up")
        self.began = pickle.loads(self.child.receive())[1]
        self._do(self.host.start, self.disk.load())
        self._catch_up()
        poll = select.poll()
        poll.register(self.child, select.POLLIN)
        poll.register(self.connection, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll(self._pause()):
                if descriptor == self.child.fileno():
                    self._send_copy()
                elif not self._read():
                    poll.unregister(descriptor)
            self._catch_up()

    def _now(self):
        return time.monotonic() - self.began

    def _pause(self):
        if self.to_itself:
            return 0
        if not self.due:
            return None
        return max(0.0, 1000 * (self.due[0][0] - time.monotonic()))

    def _tell(self, *words):
        self.child.send(serialize(words))

    # inputs

    def _send_copy(self):
        """Send the parent a copy of the node, None if it cannot be copied."""
        _, token, last = pickle.loads(self.child.receive())
        try:
            copy = cloudpickle.dumps(self.host.node)
        except Exception:
            copy = None
        self._tell("copy", token, copy)
        if last:
            self._wait_for_the_end()

    def _read(self):
        """Process the frames that have come; return False if the switch is gone."""
        try:
            frames = self.connection.read()
        except Disconnected:
            return False
        for frame in frames:
            kind, src, number, generation = ARRIVAL.unpack_from(frame)
            body = memoryview(frame)[ARRIVAL.size :]
            if kind == FROM_CLIENT:
                self._take_call(number, body)
            else:
                self._take_message(src, number, generation, body)
            self._catch_up()
        return True

    def _take_call(self, request, body):
        self.log.note("call", self._now(), request, len(body))
        call = self.calls[request] = pickle.loads(body)
        self._do(self.host.client, request, call)

    def _take_message(self, src, number, generation, body):
        now = self._now()
        # The clock first: a partition that has begun by now has raised the generation.
        if self.generations.of(src, self.me) != generation:
            self.log.note("cut", now, src, number)
            return
        self.log.note("recv", now, src, number, len(body))
        self._do(self.host.message, src, pickle.loads(body))

    def _catch_up(self):
        """Deliver the node's messages to itself, and fire timers that are due.

        At most 100 of these messages, so that an endless loop does not block others.
        """
        for _ in range(min(len(self.to_itself), _MOST_TO_ITSELF)):
            number, body = self.to_itself.popleft()
            self._take_message(self.me, number, 0, body)
        while self.due and self.due[0][0] <= time.monotonic():
            _, order, name = heapq.heappop(self.due)
            if self.timers.get(name) == order:
                del self.timers[name]
                self.log.note("note", self._now(), f"timer {shorten(describe(name))}")
                self._do(self.host.timer, name)

    def _watched(self, call: Callable, *args):
        self.watchdog.calls += 1
        self.watchdog.inside = True
        result = call(*args)
        self.watchdog.inside = False
        return result

    def _do(self, call: Callable, *args):
        """Call one of the node's methods, and apply its effects."""
        for effect in self._watched(call, *args):
            self._apply(effect)
        self.connection.finish()

    # effects

    def _apply(self, effect):
        if type(effect) is Send:
            self._send(effect.to, effect.message)
        elif type(effect) is SetTimer:
            due = time.monotonic() + effect.after_s
            order = self.timers[effect.name] = next(self.order)
            heapq.heappush(self.due, (due, order, effect.name))
        elif type(effect) is CancelTimer:
            self.timers.pop(effect.name, None)
        elif type(effect) is Reply:
            self._respond(effect.request, "ok", effect.result)
        elif type(effect) is Refuse:
            self._respond(effect.request, "failed", effect.why)
        elif type(effect) is Save:
            self.disk.save(effect.name, effect.value)
        elif type(effect) is Note:
            self.log.note("note", self._now(), str(effect.words))

    def _send(self, to: int, message: Any):
        body, number = serialize(message), next(self.numbers)
        now, words = time.monotonic(), shorten(describe(message))
        self.log.note("send", now - self.began, to, number, len(body), words)
        if to == self.me:  # it needs no network
            self.to_itself.append((number, body))
        else:
            self.connection.send(DEPARTURE.pack(to, number, now) + body)

    def _respond(self, request, outcome, result):
        call = self.calls.pop(request)
        words = describe_response(call, result)
        if outcome == "failed":
            words = f"refused: {result}" if result else "refused"
        response = serialize(("answer", request, outcome, result))
        self.log.note("answer", self._now(), request, len(response), shorten(words))
        sys.stdout.flush()  # earlier output comes first
        self.child.send(response)
