"""`simulate`: nodes and clients on a virtual clock, with reproducible runs.

    clients ──▶ node ──▶ SimulatedNetwork: dropped? twice? when? ──▶ agenda ──▶ node
                 │                                                     ▲
                 └── timers ───────────────────────────────────────────┘

The clock jumps to the next event of the agenda, which itself takes no time.
"""

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from heapq import heappop, heappush
from typing import Any

from distlab.errors import NodeFailed
from distlab.faults import (
    ClockDrift,
    ClockJump,
    Crash,
    Cut,
    NodeFault,
    Pause,
    Split,
    check_node_faults,
)
from distlab.history import History
from distlab.network.client import (
    Client,
    ClientDriver,
    ClientSession,
    check_clients,
    check_seconds,
)
from distlab.network.copies import ATOMS, freeze, plain_copy
from distlab.network.delivery import Delivery, SimulatedNetwork, check_delivery
from distlab.network.describe import describe, picture_words
from distlab.network.disk import MemoryDisk
from distlab.network.node import Effect, Runtime, session_of
from distlab.network.node_diagnosis import difference, no_end
from distlab.network.node_host import check_nodes, new_host
from distlab.network.outcome import Outcome
from distlab.network.trace_recorder import TraceRecorder, lost
from distlab.network.watchdog import Watchdog
from distlab.trace import Event

__all__ = ["SimulatedRun", "simulate"]

_TICK_S = 1e-6  # between a response and the next call: one comes after the other
_MOST_EVENTS = 4_000_000  # a gigabyte
_new = tuple.__new__  # a NamedTuple's own way to be made takes twice as long


def simulate(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client] = (),
    *,
    faults: NodeFault | Iterable[NodeFault] = (),
    delivery: Delivery = Delivery(),  # noqa: B008, it cannot change
    seed: int = 0,
    until_s: float = 60.0,
    sync_s: float = 0.001,
    twice: bool = False,
) -> Outcome:
    """Run `nodes` nodes, each made by make(me, peers), on a virtual clock.

    It ends when the clients have made all their calls, and no message is under way that
    one of these calls has caused, or at `until_s`. Timers, and messages they cause, do
    not keep it running, unless there are no clients. A method of a node takes no time,
    nor does a message between a client and its node. The same arguments give the same
    outcome, event by event.

    A node that crashes loses its memory, its timers, and the messages under way to it.
    It starts again as a new object, from its saved values.

    sync_s: the time from a `Sync` to its `on_synced`.
    twice: whether to run all a second time, to check that every node is deterministic.
    It cannot detect chance that is fixed within one process, such as the order of a set
    of strings.

    Raises: InvalidArgument, NodeFailed, NotDeterministic.
    Cost: about 10 microseconds a message.
    """
    check_nodes(nodes)
    clients = check_clients(clients, nodes, repeatable=twice)
    faults = check_node_faults(faults, nodes)
    check_delivery(delivery)
    check_seconds("until_s", until_s)
    check_seconds("sync_s", sync_s)
    new = partial(SimulatedRun, make, nodes, clients, faults, delivery, seed, sync_s)
    run = new()
    if twice:
        run.log = []
    run.run(until_s)
    if twice:
        _compare(run, new(), until_s)
    return run.outcome()


def _compare(run, again, until_s):
    """Run again, and compare all calls of nodes.

    Raises: NotDeterministic naming the first event at which the runs differ.
    """
    again.log, failed = [], None
    try:
        again.run(until_s)
    except NodeFailed as error:
        failed = error
    if parting := difference(run.log, again.log, failed, again.hosts):
        raise parting


class SimulatedRun(Runtime, TraceRecorder, ClientDriver):
    """One run on a virtual clock, from its start to its end.

    hosts: node -> its `NodeHost`, None while it is dead. disks: of the nodes.
    log: the input and effects of every call of a node, to compare two runs; or None.
    """

    _least_pause_s = _TICK_S
    _generator = random.Random  # the class of every node's `random`

    def __init__(self, make, nodes, clients, faults, delivery, seed, sync_s=0.001):
        TraceRecorder.__init__(self, nodes, len(clients))
        ClientDriver.__init__(self)
        self.make, self.seed, self.sync_s, self.log = make, seed, sync_s, None
        self.hosts, self._restarts = [None] * nodes, [0] * nodes
        self.disks = [MemoryDisk() for _ in range(nodes)]
        for number, client in enumerate(clients):
            self.sessions[number] = ClientSession(number, client, number, nodes)
        self._called = {}  # request -> its call
        # A run ends when no message is under way that a client's call has caused.
        # Protocols whose timers send messages forever always have other messages.
        self._for_client, self._under_way = False, 0
        self._timers = [{} for _ in range(nodes)]  # name -> which of its entries counts
        self._agenda, self._entries, self.taken = [], 0, 0
        self._most_events = _MOST_EVENTS
        self._network = SimulatedNetwork(nodes, delivery, faults, seed)
        self._arrivals = self._network.arrivals
        self._clocks = {}  # node -> (rate, offset) of one that is not exact
        self._described, self._words = object(), ""  # the last message, and its words
        self.watchdog = Watchdog()
        for fault in faults:
            self._plan(fault)

    def _plan(self, fault):
        match fault:
            case Split():
                sides = " | ".join(" ".join(map(str, side)) for side in fault.sides)
                begin, end = [(self.step, k, 0, 0, sides) for k in ("split", "heal")]
            case Cut():
                link = fault.src, fault.dst
                begin, end = [(self.step, kind, *link) for kind in ("cut", "mend")]
            case Crash():
                begin = self._crash, fault.node, fault.loses
                end = self._restart, fault.node
            case Pause():
                begin = self.mark, fault.node, "paused"
                end = self.mark, fault.node, "resumed"
            case ClockJump():
                begin = end = self._jump, fault.node, fault.by_s
            case ClockDrift():
                self._clocks[fault.node] = fault.rate, 0.0
                return
        self._later(fault.at_s, *begin)
        if getattr(fault, "until_s", None) is not None:
            self._later(fault.until_s, *end)

    def _later(self, when, what, *args):
        # Of two events at the same time the first to be planned comes first.
        self._entries += 1
        heappush(self._agenda, (when, self._entries, what, args))

    def run(self, until_s: float) -> None:
        """Process all events until the clients are done, or the time is over.

        Raises: NodeFailed, with the trace up to there.
        """
        with self.watchdog:
            try:
                for node in range(self.nodes):
                    self._start(node)
                for session in self.sessions.values():
                    start_s = session.client.start_s
                    self._later(start_s, self._ask, session, session.attempt)
                self._go(until_s)
            except NodeFailed as error:
                self.failed(error)
                raise

    def _go(self, until_s):
        agenda, going_on = self._agenda, self._going_on
        while agenda and going_on():
            when, _, what, args = heappop(agenda)
            if when > until_s:
                self.now = until_s
                break
            self.now = when
            what(*args)
            self.taken += 1
            if self.taken > self._most_events:
                raise self._no_end()

    def _going_on(self):
        return self.sessions or self._under_way or not self._clients

    def history(self) -> History:
        """Return the clients' operations; without a response their end is unknown."""
        return History(self.operations())

    def outcome(self) -> Outcome:
        """Return the present outcome."""
        objects = [host and host.node for host in self.hosts]
        saved = [disk.values for disk in self.disks]
        return Outcome(self.history(), self.trace(), objects, saved, self.now)

    # nodes

    def _start(self, node):
        how = self.nodes, self.seed, self._restarts[node], self._generator
        host = self.watchdog.call(new_host, self.make, node, *how)
        self.hosts[node] = host
        self._react(host, host.start, self.disks[node].values)

    def _react(self, host, method, *args):
        """Call a node's method, watched, and carry out its effects."""
        node, now = host.me, self.now
        host.node.clock_s = self.reading(node) if self._clocks else now
        effects = self.watchdog.call(method, *args)
        if self.log is not None:
            name = f"on_{method.__name__}"
            self.log.append((now, node, name, freeze(args), freeze(effects)))
        if effects:
            self.carry_out(node, effects)

    def reading(self, node: int) -> float:
        """Return the reading of a node's clock."""
        rate, offset_s = self._clocks.get(node, (1.0, 0.0))
        return rate * self.now + offset_s

    def send(self, src: int, to: int, message: Any) -> None:
        """Send a message: it arrives once, twice or never."""
        now, words = self.now, ""
        self.messages = number = self.messages + 1
        arrivals = self._arrivals(src, to, now)
        if self.traced:
            if message is not self._described:
                self._described, self._words = message, picture_words(message)
            words = self._words
            label = words if arrivals else lost(words)
            event = (src, now, now, "send", to, 0, number, label, "")
            self.events.append(_new(Event, event))
        copies = len(arrivals)
        for when in arrivals:
            self._entries += 1
            copies -= 1
            args = (src, to, message, number, words, self._for_client, copies)
            heappush(self._agenda, (when, self._entries, self._arrive, args))
            self._under_way += self._for_client
            if copies and type(message) not in ATOMS:
                message = plain_copy(message)

    def _arrive(self, src, to, message, number, words, for_client, copies):
        """Deliver a message; `copies` of it are still to arrive."""
        self._under_way -= for_client
        self._for_client = for_client
        host, now = self.hosts[to], self.now
        if self.traced:
            event = (to, now, now, "recv", src, 0, number, words, "")
            self.events.append(_new(Event, event))
        self._react(host, host.message, src, message)

    def set_timer(self, node: int, name: Hashable, after_s: float) -> None:
        """Set a timer, which runs as fast as the node's clock."""
        if node in self._clocks:
            after_s /= self._clocks[node][0]
        token = self._entries + 1
        self._later(self.now + after_s, self._run_out, node, name, token)
        self._timers[node][name] = token

    def cancel_timer(self, node: int, name: Hashable) -> None:
        """Cancel a timer."""
        self._timers[node].pop(name, None)

    def _run_out(self, node, name, token):
        if self._timers[node].get(name) != token:
            return  # it was replaced or cancelled, or the node has crashed
        if not self._postponed(node, self._run_out, node, name, token):
            del self._timers[node][name]
            self._for_client = False
            if self.traced:
                self.step("timer", node, 0, describe(name))
            host = self.hosts[node]
            self._react(host, host.timer, name)

    def _postponed(self, node, what, *args):
        """Return True if a node pauses; what was to happen then happens afterwards."""
        when = self._network.resumes(node, self.now)
        if when > self.now:
            self._later(when, what, *args)
        return when > self.now

    def write(self, node: int, effect: Effect) -> None:
        """Write to a node's disk."""
        self.disks[node].write(effect)

    def sync(self, node: int, token: Hashable) -> None:
        """Begin a sync of what a node has written so far."""
        self._under_way += self._for_client
        written = self.disks[node].written
        about = node, self._restarts[node], token, written, self._for_client
        self._later(self.now + self.sync_s, self._end_sync, *about)

    def _end_sync(self, node, restarts, token, written, for_client):
        about = node, restarts, token, written, for_client
        if self._postponed(node, self._end_sync, *about):
            return
        self._under_way -= for_client
        if self.hosts[node] is not None and self._restarts[node] == restarts:
            self._for_client = for_client
            self.disks[node].synced(written)
            self.step("synced", node, 0, describe(token))
            host = self.hosts[node]
            self._react(host, host.synced, token)

    def note(self, node: int, words: str) -> None:
        """Write words into the trace."""
        self.mark(node, str(words))

    # clients

    def _call(self, session, call):
        node, request = session.attempts.node, session.request
        self._for_client, self._called[request] = True, call
        self.asked(session.number, node, call, self.hosts[node] is not None)
        if not self._postponed(node, self._deliver, node, request, call):
            self._deliver(node, request, call)

    def _deliver(self, node, request, call):
        host = self.hosts[node]
        if host is not None:
            self._react(host, host.client, request, call)

    def reply(self, node: int, request: int, result: Any) -> None:
        """Send a client the result of its call."""
        self._respond(node, request, "ok", result)

    def refuse(self, node: int, request: int, why: str, to: int | None) -> None:
        """Send a client a refusal."""
        self._respond(node, request, "failed", None, why, to)

    def _respond(self, node, request, outcome, result, why=None, to=None):
        """Send a response; it is dropped if the client no longer waits for it."""
        number, _ = session_of(request)
        session = self.sessions.get(number)
        heard = session is not None and session.hears(request, node, outcome == "ok")
        self.answered(node, number, self._called[request], result, why, heard)
        if heard:
            self._ends(session, outcome, result, to)

    def _ends(self, session, outcome, result=None, to=None):
        if outcome == "unknown":
            self.step("time_out", session.number)
        return super()._ends(session, outcome, result, to)

    # faults

    def _crash(self, node, loses):
        self._timers[node].clear()
        self.hosts[node] = None
        self.disks[node].lose(loses)
        self.crashed(node, loses)

    def _restart(self, node):
        self._for_client = False
        self.step("restart", node)
        self._restarts[node] += 1
        self._start(node)

    def _jump(self, node, by_s):
        rate, offset_s = self._clocks.get(node, (1.0, 0.0))
        self._clocks[node] = rate, offset_s + by_s
        self.mark(node, f"clock jumps {by_s:+g} s")

    def _no_end(self):
        sent = Counter(event.rank for event in self.events if event.kind == "send")
        node, count = sent.most_common(1)[0] if sent else (0, 0)
        return no_end(node, count, self.taken, self.now)
