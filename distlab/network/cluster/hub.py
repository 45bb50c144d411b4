"""`Hub`: a cluster's processes and clients, looked after by one thread of the kernel.

    the cell ── split, kill, call ──▶ ┌─────┐ ◀── answers, prints, deaths ── nodes
             ◀── done, failed ─────── │ hub │ ── calls, cut these links ──▶ the switch
    clients ── what is due ─────────▶ └─────┘

The thread lives as long as the cluster, so that clients go on while the learner thinks
or presses buttons, and Ctrl-C, which Python gives to the main thread, finds nothing
half done: what waits is only the cell. Everything below `_live` runs in that thread.
"""

import itertools
import os
import pickle
import select
import socket
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any

from distlab.calls.console import Console
from distlab.errors import InvalidArgument, NodeFailed
from distlab.network.cluster.board import Board
from distlab.network.cluster.disk import Disk
from distlab.network.cluster.driver import Driver
from distlab.network.cluster.ears import Ears
from distlab.network.cluster.hands import Hands
from distlab.network.cluster.journal import read_journal
from distlab.network.cluster.links import Links
from distlab.network.cluster.merge import Record, merged
from distlab.network.cluster.wreck import closed
from distlab.network.delivery import Delivery
from distlab.processes import Processes

__all__ = ["Hub"]

_PRELOAD = ("cloudpickle", "distlab.network.cluster.inside")
_LOOK_S = 0.25
_COPY_S = 2.0


class Hub(Ears, Hands):
    """What a `Cluster` and its panel ask, and the thread that does it.

    states: of each node, "starting", "running", "paused" or "killed". pids: the process
    of each node. driver: the clients. failure: the exception that ended the cluster.
    over: whether it has ended. watchers: called several times in a second, and after
    the end.
    """

    def __init__(
        self, make: bytes, count: int, delivery: Delivery, seed: Any, folder: str | None
    ):
        self.count, self.seed, self.delivery = count, seed, delivery
        self.states = ["starting"] * count
        self.failure = self.copies = None
        self.watchers = []
        self.driver = Driver(self._ask_node, self.now)
        self.links = Links(count)
        self.began = self.board = self._processes = None
        self._make, self._disks = make, folder
        self._lives, self._resumed_s = [0] * count, [0.0] * count
        self._deaths, self._starts, self._killing = {}, {}, set()
        self._copying_of = {}
        self._waiting, self._tokens, self._promised = {}, itertools.count(), set()
        self._plan, self._finish, self._waiting_since = [], None, None
        self._looked_s = self.ended_s = 0.0
        self._asked, self._lock, self.over = deque(), threading.Lock(), False
        self._leaving = self._copying = False
        self._opened, self._kept = Future(), None
        self._ours, self._bell = socket.socketpair()
        for sock in (self._ours, self._bell):
            sock.setblocking(False)
        self._thread = threading.Thread(
            target=self._live, name="distlab cluster", daemon=True
        )
        self._thread.start()

    # for the cell

    def opened(self) -> None:
        """Wait until every node is up."""
        self._opened.result()

    def now(self) -> float:
        """Return the seconds from when all nodes were up, to now or to the end."""
        if self.began is None or self.over:
            return self.ended_s
        return time.monotonic() - self.began

    def ask(self, what: str, *about) -> Any:
        """Have the thread do something, and return what comes of it.

        Raises: what it raises; ClusterClosed after the end.
        """
        future = Future()
        with self._lock:
            if self.over:
                raise self.failure or closed()
            self._asked.append((future, what, about))
        self._ring()
        return future.result()

    def record(self) -> tuple[Record, list[dict]]:
        """Return what has been written down and what was saved, up to now."""
        with self._lock:
            if not self.over:
                return self._read()
        return self._kept

    def leave(self, copying: bool = False, wait: bool = True) -> None:
        """End the cluster; with `copying` take copies of its nodes before that."""
        self._copying = copying
        self._leaving = True
        self._ring()
        if wait:
            self._thread.join()

    def _ring(self):
        try:
            self._bell.send(b"!")
        except OSError:
            pass  # it is full, or the thread has ended

    # the thread

    def _live(self):
        try:
            self._open()
            while not self._leaving:
                self._turn()
            if self._copying:
                self._copy_all()
        except BaseException as error:
            self.failure = error
        finally:
            self._shut()

    def _open(self):
        self._console = Console(self.count, quiet=False, who="node")
        self.board = Board.new(self.count)
        self._processes = Processes(
            self.count + 1,
            "distlab.network.cluster.inside:main",
            preload=_PRELOAD,
            shared=[self.board.descriptor],
            private_folder=True,
        )
        self.folder = self._processes.folder
        self._disks = self._disks or os.path.join(self.folder, "disks")
        self._poll = select.poll()
        self._poll.register(self._processes, select.POLLIN)
        self._poll.register(self._ours, select.POLLIN)
        setup = {
            "folder": self.folder,
            "nodes": self.count,
            "seed": self.seed,
            "delivery": self.delivery,
        }
        self._tell(self.count, "switch", setup)

    def _turn(self):
        """Wait for the next thing, and do what follows from it."""
        due = min(self.driver.next_s(), self.next_fault_s()) - self.now()
        self._poll.poll(1000 * max(0.0, min(due, _LOOK_S)))
        self._take_bell()
        for what in self._processes.poll(0):
            self._hear(what)
        while self._asked:
            self._do(*self._asked.popleft())
        if self.began is not None:
            self.strike()
            self.driver.tick()
        self.look_for_the_end()
        self._look()

    def _take_bell(self):
        try:
            self._ours.recv(4096)
        except BlockingIOError:
            pass

    def _do(self, future, what, about):
        self._promised.add(future)
        future.add_done_callback(self._promised.discard)
        try:
            getattr(self, f"_do_{what}")(future, *about)
        except InvalidArgument as error:
            future.set_exception(error)

    def _tell(self, index, *words):
        self._processes.send(index, pickle.dumps(words))

    def _tell_switch(self, future, what, *about):
        """Tell the switch something; the future gets what it says."""
        token = next(self._tokens)
        self._waiting[token] = future
        self._tell(self.count, what, token, *about)

    # the end

    def _copy_all(self):
        future, deadline = Future(), time.monotonic() + _COPY_S
        self._do_copies(future, last=True)
        while not future.done() and time.monotonic() < deadline:
            self._turn()
        self.copies = future.result() if future.done() else None

    def _read(self):
        nodes = [read_journal(self.folder, f"node{n}") for n in range(self.count)]
        switch = read_journal(self.folder, "switch")
        disks = [self._disk(node) for node in range(self.count)]
        saved = [Disk(disk).load() for disk in disks]
        began = time.monotonic() if self.began is None else self.began
        clients, asked = list(self.driver.names), list(self.driver.notes)
        told = self.links.told(self.now())
        return Record(nodes, switch, began, clients, asked, told), saved

    def _note_failure(self, error):
        raised = isinstance(error.cause, BaseException)
        what = f"raised {type(error.cause).__name__}" if raised else "failed"
        self.links.note(error.node, self.now(), what)
        self._kept = self._read()
        error.trace = merged(self._kept[0])

    def _shut(self):
        """End every process, and let nobody wait."""
        with self._lock:
            try:
                if self._processes is not None:
                    self.ended_s = self.now()
                    self._kept = self._read()
                if isinstance(self.failure, NodeFailed):
                    self._note_failure(self.failure)
            finally:
                self.over = True
                if self._processes is not None:
                    self._processes.stop()
                    self._console.close()
                if self.board is not None:
                    self.board.close()
                for sock in (self._ours, self._bell):
                    sock.close()
        error = self.failure or closed()
        left = {*self._promised, *(future for future, *_ in self._asked), self._opened}
        for future in left:
            if not future.done():
                future.set_exception(error)
        self.show()
