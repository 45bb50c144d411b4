"""Nodes and clients on a virtual clock: what is next happens next, and takes no time.

clients ──▶ node ──▶ Fates: lost? twice? when? ──▶ agenda ──▶ node
             │                                       ▲
             └── timers ─────────────────────────────┘
"""

from collections import Counter
from heapq import heappop, heappush

from distlab.errors import NodeFailed
from distlab.faults import Crash
from distlab.network.fates import Fates
from distlab.network.plain import ATOMS, copied
from distlab.network.stage import Stage
from distlab.network.words import in_words, shortened
from distlab.trace import Event

__all__ = ["VirtualRun"]

_TICK_S = 1e-6  # between an answer and the next call: one comes after the other
_MOST_EVENTS = 4_000_000  # a gigabyte
_new = tuple.__new__  # a NamedTuple's own way to be made takes twice as long


class VirtualRun(Stage):
    """One run, from its start to its end."""

    def __init__(self, make, nodes, clients, faults, delivery, seed):
        super().__init__(make, nodes, clients, seed)
        # A run ends when no message is under way that goes back to a client's call.
        # Protocols whose timers send messages for ever always have others that are.
        self._theirs, self._under_way = False, 0
        self._timers = [{} for _ in range(nodes)]  # name -> which of its entries counts
        self._agenda, self._entries = [], 0
        self._arrivals = Fates(nodes, delivery, faults, seed).arrivals
        self._told, self._words = object(), ""  # the last message, and its words
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
        self._entries += (
            1  # of two at the same time the first that was planned is first
        )
        heappush(self._agenda, (when, self._entries, what, args))

    def run(self, until_s: float) -> None:
        """Let everything happen until the clients are done, or the time is over.

        Raises: NodeFailed, with the trace up to there.
        """
        with self._watchdog:
            try:
                for node in range(self.nodes):
                    self._begin(node)
                for number, asked in enumerate(self.clients):
                    self._later(asked.client.start_s, self._next_call, number)
                self._go(until_s)
            except NodeFailed as error:
                self.note_failure(error)
                raise

    def _go(self, until_s):
        agenda, clients = self._agenda, bool(self.clients)
        while agenda and (self.active or self._under_way or not clients):
            when, _, what, args = heappop(agenda)
            if when > until_s:
                self.now = until_s
                break
            self.now = when
            what(*args)
            if len(self.events) > _MOST_EVENTS:
                raise self._storm()

    def _send(self, src, to, message):
        now = self.now
        self._numbers = number = self._numbers + 1
        if message is not self._told:
            self._told, self._words = message, shortened(in_words(message))
        words = self._words
        arrivals = self._arrivals(src, to, now)
        label = words if arrivals else f"dropped: {words}"
        event = (src, now, now, "send", to, 0, number, label)
        self.events.append(_new(Event, event))
        for when in arrivals:
            self._entries += 1
            args = (src, to, message, number, words, self._theirs)
            heappush(self._agenda, (when, self._entries, self._arrive, args))
            self._under_way += self._theirs
            if len(arrivals) > 1 and type(message) not in ATOMS:
                message = copied(message)

    def _arrive(self, src, to, message, number, words, theirs):
        self._under_way -= theirs
        self._theirs = theirs
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
        self._theirs = False
        self._note(node, "mark", f"timer {shortened(in_words(name))}")
        host = self.hosts[node]
        self._do(node, self._call(host, host.timer, name))

    def _next_call(self, number):
        asked = self.clients[number]
        self._theirs = True
        request = self._ask(number)
        if request is not None and asked.request == request:
            give_up_s = self.now + asked.client.timeout_s
            self._later(give_up_s, self._give_up, number, request)

    def _give_up(self, number, request):
        if self.clients[number].request == request:
            self._ended(number, None, "unknown", None)

    def _free(self, number):
        pause_s = max(self.clients[number].client.pause_s, _TICK_S)
        self._later(self.now + pause_s, self._next_call, number)

    def _crash(self, node):
        self._timers[node].clear()
        super()._crash(node)

    def _restart(self, node):
        self._theirs = False
        super()._restart(node)

    def _storm(self):
        sent = Counter(event.rank for event in self.events if event.kind == "send")
        node, count = sent.most_common(1)[0] if sent else (0, 0)
        return NodeFailed(
            f"the nodes find no end: {len(self.events):,} events by {self.now:g} s of "
            f"virtual time\n\n    node {node} sent most, {count:,} messages. Does "
            "every message, or a timer of 0 s, lead to another one?",
            node=node,
            method="on_message",
            cause="too many events",
        )
