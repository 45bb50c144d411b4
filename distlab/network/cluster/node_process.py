"""A process of a cluster: it runs a node, or the switch.

    connection to the switch ── message, client's call ──▶ ┐
    timers of its own ───────────────────────────────────▶ ├ a node's method ─▶ effects
    channel from the kernel ── "go", "copy yourself" ────▶ ┘

Events are processed one after another, in rounds: all that has arrived is processed
first, and then its log and its writes go to files, the messages to the switch, and the
responses to the kernel, each in one system call. After that, a round with a `Sync`
waits for the disk, once for all. What arrives meanwhile is the next round, so the
slower the disk, the more writes one wait covers. (To wait in a thread costs more than
it saves: 0.23 ms where a wait took 0.14 ms.)
"""

import heapq
import itertools
import pickle
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import cloudpickle

from distlab.calls.serialize import unpack
from distlab.errors import InvalidArgument, NodeFailed
from distlab.network.cluster.disk import Disk, serialize
from distlab.network.cluster.event_log import EventLog, logged
from distlab.network.cluster.switch import Switch
from distlab.network.cluster.wire import (
    ARRIVAL,
    DEPARTURE,
    FROM_CLIENT,
    FrameSocket,
    LinkGenerations,
    address_in,
)
from distlab.network.describe import describe, shorten
from distlab.network.node import Append, Runtime, Save, Truncate
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
    (Switch if what == "switch" else _NodeProcess)(child, **setup).live()


class _NodeProcess(Runtime):
    """A node, from the start of its process to a SIGKILL.

    clock: (seconds that its clock is ahead, seconds of it in a second).
    answers, tokens: the responses and the syncs of this round.
    """

    def __init__(self, child, folder, disk, make, me, nodes, seed, restarts):
        self.child, self.me, self.nodes = child, me, nodes
        self.make, self.seed, self.restarts = make, seed, restarts
        self.generations = LinkGenerations(child.shared[0], nodes)
        self.log = EventLog(folder, f"node{me}")
        self.disk_folder, self.disk = disk, None
        self.numbers = itertools.count(restarts * _PER_PROCESS + 1)
        self.timers, self.due, self.order = {}, [], itertools.count()
        self.to_itself = deque()
        self.answers, self.tokens = [], []
        self.last_sent = None, b""
        self.watchdog = Watchdog()
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(address_in(folder))
        self.connection = FrameSocket(sock)
        self.connection.put(str(me).encode())
        self.connection.finish()
        select.select([self.connection], [], [])
        self.connection.read()  # the switch's welcome

    def live(self):
        try:
            with self.watchdog:
                self._live()
        except NodeFailed as error:
            if self.disk is not None:
                self._flush()
            self._tell("failed", payload_of(error))
        except InvalidArgument as error:
            self._tell("refused", str(error))
        self._wait_for_the_end()

    def _wait_for_the_end(self):
        while True:
            self.child.receive()  # until the parent ends this process

    def _live(self):
        self.disk = Disk(self.disk_folder, self.me)
        make = unpack(self.make)[0]
        self.node = self.watchdog.call(make_node, make, self.me, self.nodes)
        how = {"seed": f"{self.seed} {self.restarts}", "restarted": self.restarts > 0}
        self.host = NodeHost(self.node, self.me, self.nodes, **how)
        self._tell("up")
        _, self.began, self.clock = pickle.loads(self.child.receive())
        self._do(time.monotonic(), self.host.start, self.disk.saved)
        poll = select.poll()
        poll.register(self.child, select.POLLIN)
        poll.register(self.connection, select.POLLIN)
        while True:
            self._catch_up()
            self._flush()
            self._sync()
            for descriptor, _ in poll.poll(self._pause()):
                if descriptor == self.child.fileno():
                    self._obey()
                elif not self._read():
                    poll.unregister(descriptor)

    def _pause(self):
        if self.to_itself or self.tokens:
            return 0
        if not self.due:
            return None
        return max(0.0, 1000 * (self.due[0][0] - time.monotonic()))

    def _tell(self, *words):
        self.child.send(serialize(words))

    # inputs

    def _obey(self):
        what, *rest = pickle.loads(self.child.receive())
        getattr(self, f"_on_{what}")(*rest)

    def _on_copy(self, token, last):
        """Send the parent a copy of the node, None if it cannot be copied."""
        try:
            copy = cloudpickle.dumps(self.node)
        except Exception:
            copy = None
        self._tell("copy", token, copy)
        if last:
            self._wait_for_the_end()

    def _on_clock(self, clock):
        self.clock = clock

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
                self._take_call(src, number, body)
            else:
                self._take_message(src, number, generation, body)
            self._catch_up()
        return True

    def _take_call(self, attempt, request, body):
        now = time.monotonic()
        self.log.note("call", now - self.began, request, attempt, len(body))
        self._do(now, self.host.client, request, pickle.loads(body))

    def _take_message(self, src, number, generation, body):
        now = time.monotonic()
        # The clock first: a partition that has begun by now has raised the generation.
        if self.generations.of(src, self.me) != generation:
            self.log.note("drop", now - self.began, src, number)
            return
        self.log.note("recv", now - self.began, src, number)
        self._do(now, self.host.message, src, pickle.loads(body))

    def _catch_up(self):
        """Deliver the node's messages to itself, and fire timers that are due.

        At most 100 of these messages, so that an endless loop does not block others.
        """
        for _ in range(min(len(self.to_itself), _MOST_TO_ITSELF)):
            number, body = self.to_itself.popleft()
            self._take_message(self.me, number, 0, body)
        while self.due and self.due[0][0] <= (now := time.monotonic()):
            _, order, name = heapq.heappop(self.due)
            if self.timers.get(name) == order:
                del self.timers[name]
                self.note(self.me, f"timer {shorten(describe(name))}")
                self._do(now, self.host.timer, name)

    def _do(self, now: float, method: Callable, *args):
        """Call one of the node's methods, and carry out its effects."""
        ahead_s, rate = self.clock
        self.node.clock_s = ahead_s + rate * (now - self.began)
        self.carry_out(self.me, self.watchdog.call(method, *args))

    # the end of a round

    def _flush(self):
        """Hand over what this round's events have written, sent and answered."""
        self.log.flush()
        self.disk.flush()
        self.connection.finish()
        if self.answers:
            sys.stdout.flush()  # earlier output comes first
            self._tell("answers", self.answers)
            self.answers = []

    def _sync(self):
        """Wait for the disk once, for all syncs of this round."""
        if self.tokens:
            tokens, self.tokens = self.tokens, []
            self.disk.sync()
            for token in tokens:
                self._do(time.monotonic(), self.host.synced, token)
            self._flush()

    # effects

    def send(self, _, to: int, message: Any) -> None:
        """Put a message on its way; one to several nodes is serialized once."""
        last, body = self.last_sent
        if message is not last or last is None:
            body = serialize(message)
            self.last_sent = message, body
        now, number = time.monotonic(), next(self.numbers)
        entry = logged(message, body)
        self.log.note("send", now - self.began, to, number, len(body), entry)
        if to == self.me:  # it needs no network
            self.to_itself.append((number, body))
        else:
            self.connection.put(DEPARTURE.pack(to, number, now) + body)

    def set_timer(self, _, name: Hashable, after_s: float) -> None:
        """Set a timer, by the node's clock, which may be fast or slow."""
        due = time.monotonic() + after_s / self.clock[1]
        order = self.timers[name] = next(self.order)
        heapq.heappush(self.due, (due, order, name))

    def cancel_timer(self, _, name: Hashable) -> None:
        """Cancel a timer."""
        self.timers.pop(name, None)

    def reply(self, _, request: int, result: Any) -> None:
        """Answer a client's request."""
        body = serialize(result)
        self._answer(request, "ok", body, None, logged(result, body))

    def refuse(self, _, request: int, why: str, to: int | None) -> None:
        """Refuse a client's request."""
        words = f"refused: {why}" if why else "refused"
        self._answer(request, "failed", serialize(None), to, shorten(words))

    def _answer(self, request, outcome, body, to, entry):
        number = next(self.numbers)
        now = time.monotonic() - self.began
        self.log.note("answer", now, number, request, len(body), entry)
        self.answers.append((number, request, outcome, body, to))

    def write(self, _, effect: Save | Append | Truncate) -> None:
        """Write to the disk."""
        self.disk.write(effect)

    def sync(self, _, token: Hashable) -> None:
        """Report it to the node once this round's writes are durable."""
        self.tokens.append(token)

    def note(self, _, words: str) -> None:
        """Log words of the node's own."""
        self.log.note("note", time.monotonic() - self.began, str(words))
