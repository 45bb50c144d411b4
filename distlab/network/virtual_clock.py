"""`simulate`: nodes and clients on a virtual clock, with reproducible runs.

    clients ──▶ node ──▶ SimulatedNetwork: dropped? twice? when? ──▶ agenda ──▶ node
                 │                                                     ▲
                 └── timers ───────────────────────────────────────────┘

The clock jumps to the next event of the agenda, which itself takes no time.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush

from distlab.errors import NodeFailed
from distlab.faults import Crash, NodeFault, check_node_faults
from distlab.network.client import (
    Client,
    check_clients,
    check_repeatable,
    check_seconds,
)
from distlab.network.copies import ATOMS, plain_copy
from distlab.network.delivery import Delivery, SimulatedNetwork, check_delivery
from distlab.network.describe import describe, shorten
from distlab.network.node_diagnosis import difference, no_end
from distlab.network.node_host import check_nodes
from distlab.network.outcome import Outcome
from distlab.network.simulation import Simulation
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

    twice: whether to run all a second time, to check that every node is deterministic.
    It cannot detect chance that is fixed within one process, such as the order of a set
    of strings.

    Raises: InvalidArgument, NodeFailed, NotDeterministic.
    Cost: about 10 microseconds a message.
    """
    check_nodes(nodes)
    clients = check_clients(clients, nodes)
    faults = check_node_faults(faults, nodes)
    check_delivery(delivery)
    check_seconds("until_s", until_s)
    if twice:
        check_repeatable(clients)
    new = partial(SimulatedRun, make, nodes, clients, faults, delivery, seed)
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


class SimulatedRun(Simulation):
    """One run on a virtual clock, from its start to its end."""

    def __init__(self, make, nodes, clients, faults, delivery, seed):
        super().__init__(make, nodes, clients, seed)
        # A run ends when no message is under way that a client's call has caused.
        # Protocols whose timers send messages forever always have other messages.
        self._for_client, self._under_way = False, 0
        self._timers = [{} for _ in range(nodes)]  # name -> which of its entries counts
        self._agenda, self._entries = [], 0
        self._arrivals = SimulatedNetwork(nodes, delivery, faults, seed).arrivals
        self._described, self._words = object(), ""  # the last message, and its words
        for fault in faults:
            self._plan(fault)

    def _plan(self, fault):
        if not isinstance(fault, Crash):
            sides = " | ".join(" ".join(map(str, side)) for side in fault.sides)
            self._later(fault.at_s, self._split, sides, fault.until_s)
            return
        self._later(fault.at_s, self._crash, fault.node)
        if fault.until_s is not None:
            self._later(fault.until_s, self._restart, fault.node)

    def _later(self, when, what, *args):
        # Of two events at the same time the first to be planned comes first.
        self._entries += 1
        heappush(self._agenda, (when, self._entries, what, args))

    def run(self, until_s: float) -> None:
        """Process all events until the clients are done, or the time is over.

        Raises: NodeFailed, with the trace up to there.
        """
        with self._watchdog:
            try:
                for node in range(self.nodes):
                    self._start(node)
                for number, session in enumerate(self.sessions):
                    self._later(session.client.start_s, self._next_call, number)
                self._go(until_s)
            except NodeFailed as error:
                self.note_failure(error)
                raise

    def _go(self, until_s):
        agenda, clients = self._agenda, bool(self.sessions)
        while agenda and (self.active or self._under_way or not clients):
            when, _, what, args = heappop(agenda)
            if when > until_s:
                self.now = until_s
                break
            self.now = when
            what(*args)
            if len(self.events) > _MOST_EVENTS:
                raise self._no_end()

    def _send(self, src, to, message):
        now = self.now
        self._messages = number = self._messages + 1
        if message is not self._described:
            self._described, self._words = message, shorten(describe(message))
        words = self._words
        arrivals = self._arrivals(src, to, now)
        label = words if arrivals else f"dropped: {words}"
        event = (src, now, now, "send", to, 0, number, label)
        self.events.append(_new(Event, event))
        for when in arrivals:
            self._entries += 1
            args = (src, to, message, number, words, self._for_client)
            heappush(self._agenda, (when, self._entries, self._arrive, args))
            self._under_way += self._for_client
            if len(arrivals) > 1 and type(message) not in ATOMS:
                message = plain_copy(message)

    def _arrive(self, src, to, message, number, words, for_client):
        self._under_way -= for_client
        self._for_client = for_client
        host, now = self.hosts[to], self.now
        event = (to, now, now, "recv", src, 0, number, words)
        self.events.append(_new(Event, event))
        effects = self._call(host, host.message, src, message)
        if effects:
            self._do(to, effects)

    def _set(self, node, name, after_s):
        token = self._entries + 1
        self._later(self.now + after_s, self._run_out, node, name, token)
        self._timers[node][name] = token

    def _cancel(self, node, name):
        self._timers[node].pop(name, None)

    def _run_out(self, node, name, token):
        if self._timers[node].get(name) != token:
            return  # it was replaced or cancelled, or the node has crashed
        del self._timers[node][name]
        self._for_client = False
        self._note(node, "mark", f"timer {shorten(describe(name))}")
        host = self.hosts[node]
        self._do(node, self._call(host, host.timer, name))

    def _next_call(self, number):
        session = self.sessions[number]
        self._for_client = True
        request = self._invoke(number)
        if request is not None and session.request == request:
            end_s = self.now + session.client.timeout_s
            self._later(end_s, self._wait_no_longer, number, request)

    def _wait_no_longer(self, number, request):
        if self.sessions[number].request == request:
            self._time_out(number)

    def _free(self, number):
        pause_s = max(self.sessions[number].client.pause_s, _TICK_S)
        self._later(self.now + pause_s, self._next_call, number)

    def _crash(self, node):
        self._timers[node].clear()
        super()._crash(node)

    def _restart(self, node):
        self._for_client = False
        super()._restart(node)

    def _no_end(self):
        sent = Counter(event.rank for event in self.events if event.kind == "send")
        node, count = sent.most_common(1)[0] if sent else (0, 0)
        return no_end(node, count, len(self.events), self.now)
