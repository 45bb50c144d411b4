"""`Supervisor`: a cluster's processes and clients, run by one thread of the kernel.

    the cell ── split, kill ──▶ ┌────────────┐ ◀── answers, prints, deaths ── nodes
             ◀── done, failed ─ │ supervisor │ ── calls, cut these links ──▶ switch
    clients ── calls due ─────▶ └────────────┘

The thread lives as long as the cluster, so that clients continue while the learner
thinks or presses buttons, and Ctrl-C, which Python raises in the main thread, leaves
nothing half done: only the cell waits. The cell calls the methods above `_live`; all
others run in the thread. A method here serves each request of the cell, and returns the
result, or a Future that gets it later.
"""

import heapq
import itertools
import os
import pickle
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import cloudpickle

from distlab.calls.printed_output import Console
from distlab.errors import InvalidArgument, NodeFailed, SwitchFailed
from distlab.faults import ClockDrift, NodeFault
from distlab.network.client import Client
from distlab.network.cluster.clients import ClusterClients
from distlab.network.cluster.disk import lose, read_disk
from distlab.network.cluster.event_log import Logs, merge_logs, read_log
from distlab.network.cluster.partitions import Partitions, planned
from distlab.network.cluster.requests import Requests
from distlab.network.cluster.wire import LinkGenerations
from distlab.network.delivery import Delivery
from distlab.network.node_diagnosis import (
    closed,
    ended_alone,
    failure_from,
    failure_label,
    switch_gone,
)
from distlab.network.trace_recorder import LOST
from distlab.patience import patience
from distlab.processes import Ended, Lines, Processes, anonymous_file
from distlab.trace import Call

__all__ = ["Supervisor"]

_PRELOAD = ("cloudpickle", "distlab.network.cluster.node_process")
_LOOK_S, _COPY_S = 0.25, 5.0
_SETTLE_S, _QUIET_WITHIN_S = 0.05, 1.0


class Supervisor:
    """The supervisor of a `Cluster`: its state, and the thread that serves requests.

    states: of each node, "starting", "running", "paused" or "killed". clocks: of each,
    (seconds that it is ahead, its seconds in a second). copies: of each, at the end.
    partitions: the cut links. failure: the exception that ended the cluster. over:
    whether it has ended. watchers: called several times a second, and after the end.
    """

    def __init__(
        self,
        make: bytes,
        count: int,
        delivery: Delivery,
        seed: Any,
        faults: Iterable[NodeFault],
    ):
        self.count, self.seed, self.delivery = count, seed, delivery
        self.states = ["starting"] * count
        self.failure = self.copies = None
        self.watchers, self.over = [], False
        self.clients = ClusterClients(count, self.now, self._at)
        self.partitions = Partitions(count)
        self._began = self._generations = self._processes = self._kept = None
        self._make, self._restarts = make, [0] * count
        self._opened, self._starts, self._deaths = Future(), {}, {}
        self._losses = {}  # node that is being killed -> what its disk loses
        rates = {f.node: f.rate for f in faults if isinstance(f, ClockDrift)}
        self.clocks = [(0.0, rates.get(node, 1.0)) for node in range(count)]
        self._replies, self._tokens = {}, itertools.count()  # token -> (index, Future)
        self._plan, self._finished, self._finish_s = [], None, 0.0
        self._quiet_since = None  # the time when all clients were done
        self._looked_s = self._ended_s = 0.0
        self._leaving = self._copying = False
        for number, fault in enumerate(faults):
            for when_s, what, *args in planned(fault, number):
                self._at(when_s, self._strike, getattr(self, what), *args)
        self._requests = Requests()
        self.ask = self._requests.ask  # a method below; for the cell
        self._thread = threading.Thread(
            target=self._live, name="distlab cluster", daemon=True
        )
        self._thread.start()

    # for the cell

    def opened(self) -> None:
        """Wait until every node is up."""
        self._opened.result()

    def now(self) -> float:
        """Return the seconds since all nodes were up, until now or until the end."""
        if self._began is None or self.over:
            return self._ended_s
        return time.monotonic() - self._began

    def record(self) -> tuple[Logs, list[dict]]:
        """Return the logs, and the saved values of each node, up to now."""
        with self._requests.lock:
            if not self.over:
                return self._read()
        return self._kept

    def leave(self, copying: bool = False, wait: bool = True) -> None:
        """End the cluster; with `copying` take copies of its nodes before that."""
        self._copying = copying
        self._leaving = True
        self._requests.ring()
        if wait:
            self._thread.join()

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
        shared = anonymous_file("link generations")
        self._generations = LinkGenerations(shared, self.count)
        self._processes = Processes(
            self.count + 1,
            "distlab.network.cluster.node_process:main",
            preload=_PRELOAD,
            shared=[shared],
            private_folder=True,
            disk_folder=True,  # a sync has to wait for a device
        )
        self.folder = self._processes.folder
        self._poll = select.poll()
        self._poll.register(self._processes, select.POLLIN)
        self._poll.register(self._requests, select.POLLIN)
        setup = {"nodes": self.count, "seed": self.seed, "folder": self.folder}
        delivery = cloudpickle.dumps(self.delivery)
        self._tell(self.count, "switch", setup | {"delivery": delivery})

    def _turn(self):
        due = self._next_s() - self.now()
        self._poll.poll(1000 * max(0.0, min(due, _LOOK_S)))
        for what in self._processes.poll(0):
            self._hear(what)
        self._requests.serve()
        if self._began is not None:
            self._act()
            if self.clients.to_send:
                self._tell(self.count, "calls", self.clients.to_send)
                self.clients.to_send.clear()
        self._look_for_the_end()
        if time.monotonic() > self._looked_s + _LOOK_S:
            self._looked_s = time.monotonic()
            self._show()

    def _tell(self, index, *words):
        self._processes.send(index, pickle.dumps(words))

    def _ask(self, index, what, *args):
        """Send a process a request; return the Future of its response.

        Its result is None if the process dies before.
        """
        token, future = next(self._tokens), Future()
        self._replies[token] = index, future
        self._tell(index, what, token, *args)
        return future

    def _show(self):
        """Call all watchers; remove those that raise."""
        for watcher in list(self.watchers):
            try:
                watcher()
            except Exception:  # its page may be closed
                self.watchers.remove(watcher)

    # messages of the processes

    def _hear(self, what):
        if isinstance(what, Lines):
            if what.index < self.count:
                self._console.add(what.index, what.text)
        elif isinstance(what, Ended):
            self._hear_end(what.index, what.status)
        else:
            kind, *rest = pickle.loads(what.payload)
            getattr(self, f"_hear_{kind}")(what.index, *rest)

    def _hear_open(self, _):
        for node in range(self.count):
            self._set_up(node)

    def _set_up(self, node):
        setup = {
            "folder": self.folder,
            "disk": self._disk(node),
            "make": self._make,
            "me": node,
            "nodes": self.count,
            "seed": self.seed,
            "restarts": self._restarts[node],
        }
        self._tell(node, "node", setup)

    def _disk(self, node):
        return os.path.join(self._processes.disk_folder, f"node{node}")

    def _hear_up(self, node):
        self.states[node] = "ready"
        if self._began is not None:
            self._go(node)
        elif self.states.count("ready") == self.count:
            self._began = time.monotonic()
            for other in range(self.count):
                self._go(other)
            self._opened.set_result(None)

    def _go(self, node):
        self._tell(node, "go", self._began, self.clocks[node])
        self.states[node] = "running"
        if node in self._starts:
            self.partitions.note(node, self.now(), "restart")
            self._starts.pop(node).set_result(None)

    def _hear_answers(self, node, answers):
        for number, request, outcome, body, to in answers:
            result = pickle.loads(body)
            self.clients.answered(node, number, request, outcome, result, to)

    def _hear_failed(self, node, payload):
        raise failure_from(node, payload)

    def _hear_broken(self, _, why):
        raise SwitchFailed(why)

    def _hear_refused(self, node, why):
        raise InvalidArgument(why)

    def _hear_done(self, _, token, result):
        _, future = self._replies.pop(token)
        future.set_result(result)

    def _hear_copy(self, node, token, data):
        """Record a node's copy of itself; None from one that cannot be copied."""
        copy = None
        with suppress(Exception):
            copy = data and pickle.loads(data)
        self._hear_done(node, token, copy)

    def _hear_end(self, index, status):
        if index == self.count:
            raise switch_gone(status)
        if status != -signal.SIGKILL or self._began is None:
            raise ended_alone(index, status)
        loses = self._losses.pop(index, "")
        lose(self._disk(index), index, loses)
        self.states[index] = "killed"
        if loses:
            words = f"disk loses {LOST[loses]}"
            self.partitions.note(index, self.now(), words, "mark")
        self.partitions.note(index, self.now(), "crash")
        waiting = [self._deaths.pop(index, None), self._starts.pop(index, None)]
        for future in filter(None, waiting):
            future.set_result(None)
        for token in [t for t, (of, _) in self._replies.items() if of == index]:
            self._hear_done(index, token, None)

    # requests of the cell

    def start_clients(self, clients: list[Client], since_s: float | None) -> None:
        """Add clients; their times count from `since_s`, or from now."""
        self.clients.add(clients, self.now() if since_s is None else since_s)

    def call(self, node: int, call: Call, timeout_s: float) -> Future:
        """Make one call."""
        future = Future()
        self.clients.by_hand(node, call, timeout_s, future.set_result)
        return future

    def pids(self) -> list[int | None]:
        """Return the id of each node's process."""
        return self._processes.pids[: self.count]

    def deliver(self, delivery: Delivery) -> Future:
        """Change the delivery of messages from now on."""
        self.delivery = delivery
        return self._ask(self.count, "delivery", cloudpickle.dumps(delivery))

    def kill(self, node: int, loses: str = "") -> Future:
        """Send SIGKILL to a node's process; then its disk loses what it is to lose."""
        if self.states[node] == "killed":
            raise InvalidArgument(f"node {node} is dead already; restart it first.")
        self._losses[node] = loses
        self._processes.signal(node, signal.SIGKILL)
        return self._deaths.setdefault(node, Future())

    def restart(self, node: int) -> Future:
        """Start a new process for a dead node."""
        if self.states[node] != "killed":
            raise InvalidArgument(
                f"node {node} is {self.states[node]}; kill it first: "
                f"cluster.kill({node})."
            )
        self._restarts[node] += 1
        self.states[node] = "starting"
        self._starts[node] = Future()
        self._processes.replace(node)
        self._set_up(node)
        return self._starts[node]

    def pause(self, node: int) -> None:
        """Send SIGSTOP to a node's process."""
        state = self.states[node]
        if state != "running":
            raise InvalidArgument(f"node {node} does not run: it is {state}.")
        self._signal(node, signal.SIGSTOP, "paused", "paused")

    def resume(self, node: int) -> None:
        """Send SIGCONT to a node's process."""
        state = self.states[node]
        if state != "paused":
            raise InvalidArgument(f"node {node} is not paused: it is {state}.")
        self._signal(node, signal.SIGCONT, "running", "resumed")

    def _signal(self, node, number, state, label):
        before_s = self.now()
        self._processes.signal(node, number)
        self.states[node] = state
        # Between the two marks the node has no events.
        at_s = before_s if state == "running" else self.now()
        self.partitions.note(node, at_s, label, "mark")

    def move_clock(self, node: int, by_s: float) -> None:
        """Let a node's clock jump; a dead node's is ahead when it starts again."""
        ahead_s, rate = self.clocks[node]
        self.clocks[node] = ahead_s + by_s, rate
        if self.states[node] in ("running", "paused"):
            self._tell(node, "clock", self.clocks[node])
        self.partitions.note(node, self.now(), f"clock jumps {by_s:+g} s", "mark")

    def change_links(self, change: Callable, *args: Any) -> Future:
        """Make a change to the partitions; done when the switch has cut the links."""
        change(self.partitions, *args)
        present = [event for event, _ in self.partitions.present.values()]
        future = Future()

        def changed(described):
            self.partitions.changed(present, described.result() - self._began)
            future.set_result(None)

        described = self._ask(self.count, "links", self.partitions.severed())
        described.add_done_callback(changed)
        return future

    def copy_nodes(self, last: bool = False) -> Future:
        """Request a copy of each running node; after the `last` one it stops."""
        running = [n for n, state in enumerate(self.states) if state == "running"]
        future, asked = Future(), {n: self._ask(n, "copy", last) for n in running}

        def arrived(_=None):
            if all(one.done() for one in asked.values()):
                copies = {node: one.result() for node, one in asked.items()}
                future.set_result(list(map(copies.get, range(self.count))))

        for one in asked.values():
            one.add_done_callback(arrived)
        if not asked:
            arrived()
        return future

    # planned faults, and the clients' calls and time-outs

    def _at(self, when_s, what, *args):
        heapq.heappush(self._plan, (when_s, next(self._tokens), what, args))

    def _next_s(self):
        return self._plan[0][0] if self._plan else float("inf")

    def _act(self):
        while self._next_s() <= self.now():
            _, _, what, args = heapq.heappop(self._plan)
            what(*args)

    def _strike(self, what, node, *args):
        """Begin or end a planned fault; a crash of a dead node changes nothing."""
        if node in self._starts or node in self._deaths:  # not yet
            return self._at(self.now() + _SETTLE_S, self._strike, what, node, *args)
        with suppress(InvalidArgument):
            what(node, *args)

    # the end of a run

    def finish(self, within_s: float) -> Future:
        """Wait for the clients; then, up to a second, for messages under way."""
        self._finished, self._finish_s = Future(), within_s
        return self._finished

    def _look_for_the_end(self):
        if self._finished is None or self._finished.done():
            return
        if self.now() > self._finish_s:
            self._finished.set_result(None)
        elif not self.clients.sessions and self._quiet_since is None:
            self._quiet_since = self.now()
            self._ask_quiet()

    def _ask_quiet(self):
        self._ask(self.count, "quiet").add_done_callback(self._hear_quiet)

    def _hear_quiet(self, described):
        """Finish if no message is under way, or the second is over; else ask again."""
        since, now = described.result(), time.monotonic()
        settled = since is not None and now - since > _SETTLE_S
        late = self.now() > self._quiet_since + _QUIET_WITHIN_S
        if self._finished.done():
            return
        if settled or late:
            self._finished.set_result(None)
        else:
            self._at(self.now() + _SETTLE_S / 2, self._ask_quiet)

    def _copy_all(self):
        """Collect last copies; the watchdog detects a node that does not return."""
        self._plan.clear()  # a node that pauses now would not answer
        future = self.copy_nodes(last=True)
        deadline = time.monotonic() + patience(_COPY_S)
        while not future.done() and time.monotonic() < deadline:
            self._turn()
        self.copies = future.result() if future.done() else None

    def _read(self):
        nodes = [read_log(self.folder, f"node{n}") for n in range(self.count)]
        switch = read_log(self.folder, "switch")
        saved = list(map(self._saved, range(self.count)))
        names, asked = list(self.clients.names), list(self.clients.notes)
        records = self.partitions.events(self.now())
        return Logs(nodes, switch, names, asked, records), saved

    def _saved(self, node):
        """Return the values on a node's disk; if it is corrupt, the cluster fails."""
        try:
            return read_disk(self._disk(node), node)
        except NodeFailed as error:
            self.failure = self.failure or error
            return {}

    def _note_failure(self, error):
        self.partitions.note(error.node, self.now(), failure_label(error))
        self._kept = self._read()
        error.trace = merge_logs(self._kept[0])

    def _shut(self):
        with self._requests.lock:
            try:
                if self._processes is not None:
                    self._ended_s = self.now()
                    self._kept = self._read()
                if isinstance(self.failure, NodeFailed):
                    self._note_failure(self.failure)
            finally:
                self.over = True
                self._requests.error = self.failure or closed()
                if self._processes is not None:
                    self._processes.stop()
                    self._console.close()
                if self._generations is not None:
                    self._generations.close()
        self._requests.close()
        if not self._opened.done():
            self._opened.set_exception(self._requests.error)
        self._show()
