"""The inside of a cluster's processes: a node lives here, or the switch.

    socket from the switch ── message, client's call ──▶ ┐
    timers of its own ─────────────────────────────────▶ ├ the node's method ─▶ effects
    channel from the kernel ── "go", "copy yourself" ──▶ ┘

One thing after another, each effect before the next. The journal has a line for each,
written first, with the time on the one clock of this machine.
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

from distlab.calls.travel import unpack
from distlab.errors import InvalidArgument, NodeFailed
from distlab.network.cluster.board import Board
from distlab.network.cluster.disk import Disk, packed
from distlab.network.cluster.journal import Journal
from distlab.network.cluster.stream import Stream
from distlab.network.cluster.switch import (
    ARRIVAL,
    DEPARTURE,
    FROM_CLIENT,
    door_in,
    switch,
)
from distlab.network.cluster.wreck import facts_of
from distlab.network.effects import Hosted, made
from distlab.network.failure import handled
from distlab.network.node import (
    CancelTimer,
    Note,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
)
from distlab.network.words import answer_in_words, in_words, shortened
from distlab.processes import Child, Disconnected

__all__ = ["INCARNATION", "main"]

# A message's number is the k-th of its node's process, which is the i-th: i * this + k.
INCARNATION = 2**32
_MOST_OWN = 100


def main(child: Child) -> None:
    """Be the switch, or the node that the owner says."""
    what, setup = pickle.loads(child.receive())
    if what == "switch":
        switch(child, setup)
    else:
        _Life(child, **setup).live()


class _Life:
    """A node's life in this process, from its first breath to a SIGKILL."""

    def __init__(self, child, folder, disk, make, me, nodes, seed, life):
        self.child, self.me, self.nodes = child, me, nodes
        self.board = Board(child.shared[0], nodes)
        self.journal = Journal(folder, f"node{me}")
        self.disk = Disk(disk)
        self.numbers = itertools.count(life * INCARNATION + 1)
        self.timers, self.due = {}, []
        self.order, self.own = itertools.count(), deque()
        self.calls = {}
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(door_in(folder))
        self.stream = Stream(sock)
        self.stream.send(str(me).encode())
        select.select([self.stream], [], [])
        self.stream.read()  # the switch knows it now
        self.make, self.seed, self.life = make, seed, life

    def live(self):
        try:
            self._live()
        except NodeFailed as error:
            self._tell("failed", facts_of(error))
        except InvalidArgument as error:
            self._tell("refused", str(error))
        while True:
            self.child.receive()  # until the owner ends this process

    def _live(self):
        self.board.begins(self.me, time.monotonic(), "__init__|as it was made")
        node = made(unpack(self.make)[0], self.me, self.nodes)
        seed = f"{self.seed} {self.life}"
        life = self.life > 0
        self.node = Hosted(node, self.me, self.nodes, seed=seed, restarted=life)
        self.board.ends(self.me)
        self._tell("up")
        self.began = pickle.loads(self.child.receive())[1]
        self._do(self.node.start, "on_start", self.disk.load())
        self._catch_up()
        poll = select.poll()
        poll.register(self.child, select.POLLIN)
        poll.register(self.stream, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll(self._pause()):
                if descriptor == self.child.fileno():
                    self._obey()
                elif not self._hear():
                    poll.unregister(descriptor)
            self._catch_up()

    def _now(self):
        return time.monotonic() - self.began

    def _pause(self):
        if self.own:
            return 0
        if not self.due:
            return None
        return max(0.0, 1000 * (self.due[0][0] - time.monotonic()))

    def _tell(self, *words):
        self.child.send(packed(words))

    # what happens to it

    def _obey(self):
        """Send the owner a copy of the node, None if it cannot be copied."""
        _, token, last = pickle.loads(self.child.receive())
        try:
            copy = cloudpickle.dumps(self.node.node)
        except Exception:
            copy = None
        self._tell("copy", token, copy)
        while last:
            self.child.receive()  # until the owner ends this process

    def _hear(self):
        """Take what has come; return whether the switch is there still."""
        try:
            frames = self.stream.read()
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
        self.journal.note("call", self._now(), request, len(body))
        call = self.calls[request] = pickle.loads(body)
        self._do(self.node.client, "on_client", request, call)

    def _take_message(self, src, number, generation, body):
        now = self._now()
        # The clock before the board: a split that has begun by now has raised it.
        if self.board.generation(src, self.me) != generation:
            self.journal.note("cut", now, src, number)
            return
        self.journal.note("recv", now, src, number, len(body))
        self._do(self.node.message, "on_message", src, pickle.loads(body))

    def _catch_up(self):
        """Take what the node has sent to itself, and the timers that have run out.

        Some of it only, if it has no end: others want to be heard as well.
        """
        for _ in range(min(len(self.own), _MOST_OWN)):
            number, body = self.own.popleft()
            self._take_message(self.me, number, 0, body)
        while self.due and self.due[0][0] <= time.monotonic():
            _, order, name = heapq.heappop(self.due)
            if self.timers.get(name) == order:
                del self.timers[name]
                words = f"timer {shortened(in_words(name))}"
                self.journal.note("note", self._now(), words)
                self._do(self.node.timer, "on_timer", name)

    def _do(self, call: Callable, method: str, *args):
        """Call one of the node's methods, and do what it says."""
        doing = f"{method}|{handled(method, args)}"
        self.board.begins(self.me, time.monotonic(), doing)
        for effect in call(*args):
            self._apply(effect)
        self.stream.finish()
        self.board.ends(self.me)

    # what it wants

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
            self._answer(effect.request, "ok", effect.result)
        elif type(effect) is Refuse:
            self._answer(effect.request, "failed", effect.why)
        elif type(effect) is Save:
            self.disk.save(effect.name, effect.value)
        elif type(effect) is Note:
            self.journal.note("note", self._now(), str(effect.words))

    def _send(self, to: int, message: Any):
        body, number = packed(message), next(self.numbers)
        now = time.monotonic()
        words = shortened(in_words(message))
        self.journal.note("send", now - self.began, to, number, len(body), words)
        if to == self.me:  # it needs no network
            self.own.append((number, body))
        else:
            self.stream.send(DEPARTURE.pack(to, number, now) + body)

    def _answer(self, request, outcome, result):
        call = self.calls.pop(request)
        words = answer_in_words(call, result)
        if outcome == "failed":
            words = f"refused: {result}" if result else "refused"
        told = packed(("answer", request, outcome, result))
        self.journal.note("answer", self._now(), request, len(told), shortened(words))
        sys.stdout.flush()  # what it printed first comes first
        self.child.send(told)
