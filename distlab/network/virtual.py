"""Nodes and clients on a virtual clock: what is next happens next, and takes no time.

    clients ──▶ node ──▶ lost? twice? cut off? ──▶ agenda ──▶ node
                 │                                   ▲
                 └── timers ─────────────────────────┘

What becomes of a message is decided by `Fates` as it is sent.
"""

from collections import Counter
from heapq import heappop, heappush

from distlab.errors import NodeFailed
from distlab.faults import Crash
from distlab.history import History
from distlab.network.arguments import Asking
from distlab.network.effects import Hosted, made
from distlab.network.fates import Fates
from distlab.network.frozen import freeze
from distlab.network.node import CancelTimer, Note, Reply, Save, Send, SetTimer
from distlab.network.plain import ATOMS, copied
from distlab.network.watchdog import Watchdog
from distlab.network.words import answer_in_words, call_in_words, in_words, shortened
from distlab.trace import Event, Operation, Trace

__all__ = ["Asked", "VirtualRun"]

ARRIVES, RUNS_OUT, CALLS, GIVES_UP, CRASHES, RESTARTS, SPLITS = range(7)
_TICK_S = 1e-6  # between an answer and the next call: one comes after the other
_MOST_EVENTS = 4_000_000
_new = tuple.__new__  # a NamedTuple's own way to be made takes twice as long


class Asked:
    """A client as it runs: what it asks, and what it waits for.

    request, call, since: of the call that has no answer yet; request is None else.
    result: of the call before.
    """

    __slots__ = ("asking", "call", "client", "request", "result", "since")

    def __init__(self, number, client):
        self.client = client
        self.asking = Asking(number, client.calls)
        self.request = self.call = self.since = self.result = None


class VirtualRun:
    """One run, from its start to its end.

    now: the time. hosts: node -> its `Hosted`, None while it is dead. saved: node ->
    its disk. events, operations: what happened so far.
    log: what every node was given and made of it, if somebody wants to compare.
    """

    def __init__(self, make, nodes, clients, faults, delivery, seed):
        self.make, self.nodes, self.seed = make, nodes, seed
        self.now = 0.0
        self.events, self.operations, self.log = [], [], None
        self.saved = [{} for _ in range(nodes)]
        self.hosts, self._lives = [None] * nodes, [0] * nodes
        self.clients = [Asked(number, client) for number, client in enumerate(clients)]
        self.active, self.under_way = len(self.clients), 0
        self._timers = [{} for _ in range(nodes)]
        self._requests, self._asking = 0, {}  # request -> the client that asked
        self._splits = {}  # index of its event -> the fault
        self._agenda, self._entries, self._numbers = [], 0, 0
        self._arrivals = Fates(nodes, delivery, faults, seed).arrivals
        self._told, self._words = object(), ""  # the last message, and its words
        self._plan(faults)

    def _plan(self, faults):
        for fault in faults:
            if not isinstance(fault, Crash):
                self._later(fault.at_s, SPLITS, fault)
                continue
            self._later(fault.at_s, CRASHES, fault.node)
            if fault.until_s is not None:
                self._later(fault.until_s, RESTARTS, fault.node)

    def _later(self, when, what, a, b=None, c=None, d=None):
        self._entries += 1
        heappush(self._agenda, (when, self._entries, what, a, b, c, d))

    def run(self, until_s: float) -> None:
        """Let everything happen until the clients are done, or the time is over.

        Raises: NodeFailed, with the trace up to there.
        """
        with Watchdog() as self._watchdog:
            try:
                self._start()
                self._go(until_s)
            except NodeFailed as error:
                cause = error.cause
                what = f"raised {type(cause).__name__}"
                what = what if isinstance(cause, BaseException) else "failed"
                self._note(error.node, "fault", what)
                error.trace = self.trace()
                raise

    def _start(self):
        for node in range(self.nodes):
            self._begin(node)
        for number, asked in enumerate(self.clients):
            self._later(asked.client.start_s, CALLS, number)

    def _go(self, until_s):
        agenda, clients = self._agenda, bool(self.clients)
        actions = {
            ARRIVES: self._arrive, RUNS_OUT: self._run_out, CALLS: self._ask,
            GIVES_UP: self._give_up, CRASHES: self._crash, RESTARTS: self._restart,
            SPLITS: self._split,
        }  # fmt: skip
        while agenda and (self.active or self.under_way or not clients):
            when, _, what, a, b, c, d = heappop(agenda)
            if when > until_s:
                self.now = until_s
                break
            self.now = when
            actions[what](a, b, c, d)
            if len(self.events) > _MOST_EVENTS:
                raise self._storm()

    def _call(self, host, method, *args):
        """Call a node's method, watched; return its effects."""
        watchdog = self._watchdog
        watchdog.calls += 1
        watchdog.inside = True
        effects = method(*args)
        watchdog.inside = False
        if self.log is not None and host is not None:
            name = f"on_{method.__name__}"
            entry = (self.now, host.me, name, freeze(args), freeze(effects))
            self.log.append(entry)
        return effects

    def _do(self, node, effects):
        """Let the effects of one node happen, in order."""
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                self._send(node, effect[0], effect[1])
            elif kind is SetTimer:
                name, token = effect.name, self._entries + 1
                self._later(self.now + effect.after_s, RUNS_OUT, node, name, token)
                self._timers[node][name] = token
            elif kind is Save:
                self.saved[node][effect.name] = effect.value
            elif kind is CancelTimer:
                self._timers[node].pop(effect.name, None)
            elif kind is Note:
                self._note(node, "mark", str(effect.words))
            else:
                self._answer(node, effect)

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
            entry = (when, self._entries, ARRIVES, src, to, message, (number, words))
            heappush(self._agenda, entry)
            self.under_way += 1
            if len(arrivals) > 1 and type(message) not in ATOMS:
                message = copied(message)

    def _arrive(self, src, to, message, number_words):
        self.under_way -= 1
        number, words = number_words
        host, now = self.hosts[to], self.now
        event = (to, now, now, "recv", src, 0, number, words)
        self.events.append(_new(Event, event))
        effects = self._call(host, host.message, src, message)
        if effects:
            self._do(to, effects)

    def _run_out(self, node, name, token, _):
        if self._timers[node].get(name) != token:
            return  # it was replaced or cancelled, or the node has crashed
        del self._timers[node][name]
        self._note(node, "mark", f"timer {shortened(in_words(name))}")
        host = self.hosts[node]
        self._do(node, self._call(host, host.timer, name))

    def _ask(self, number, *_):
        asked = self.clients[number]
        call = asked.asking.next(asked.result)
        if call is None:
            self.active -= 1
            return
        self._requests += 1
        asked.request, asked.call, asked.since = self._requests, call, self.now
        self._asking[self._requests] = number
        give_up_s = self.now + asked.client.timeout_s
        self._later(give_up_s, GIVES_UP, number, self._requests)
        node = asked.client.node
        host = self.hosts[node]
        words = shortened(call_in_words(call))
        self._pass(self.nodes + number, node, words, host is not None)
        if host is not None:
            self._do(node, self._call(host, host.client, self._requests, call))

    def _answer(self, node, effect):
        """Tell a client; one that has given up does not hear it."""
        number = self._asking.pop(effect.request)
        asked, done = self.clients[number], type(effect) is Reply
        refusal = f"refused: {effect.why}" if not done and effect.why else "refused"
        words = answer_in_words(asked.call, effect.result) if done else refusal
        heard = asked.request == effect.request
        self._pass(node, self.nodes + number, shortened(words), heard)
        if heard:
            result = effect.result if done else None
            self._ended(number, self.now, "ok" if done else "failed", result)

    def _give_up(self, number, request, *_):
        if self.clients[number].request == request:
            self._ended(number, None, "unknown", None)

    def _ended(self, number, end, outcome, result):
        asked = self.clients[number]
        what = (*asked.call, asked.since, end, outcome, result)
        self.operations.append(Operation(number, *what))
        asked.request, asked.result = None, result
        self._later(self.now + max(asked.client.pause_s, _TICK_S), CALLS, number)

    def _pass(self, src, dst, words, heard):
        """Note what a client and its node say to each other, which takes no time."""
        self._numbers += 1
        label = words if heard else f"dropped: {words}"
        self._event(src, "send", dst, self._numbers, label)
        if heard:
            self._event(dst, "recv", src, self._numbers, words)

    def _event(self, who, kind, peer, step, label):
        event = Event(who, self.now, self.now, kind, peer, 0, step, label)
        self.events.append(event)

    def _note(self, node, kind, words):
        self._event(node, kind, None, 0, words)

    def _crash(self, node, *_):
        self.hosts[node] = None
        self._timers[node].clear()
        self._note(node, "fault", "crash")

    def _restart(self, node, *_):
        self._note(node, "fault", "restart")
        self._lives[node] += 1
        self._begin(node)

    def _begin(self, node):
        """Make a node's object, and start it from its disk."""
        life = self._lives[node]
        new = self._call(None, made, self.make, node, self.nodes)
        seed = f"{self.seed} {life}"
        host = Hosted(new, node, self.nodes, seed=seed, restarted=life > 0)
        self.hosts[node] = host
        self._do(node, self._call(host, host.start, self.saved[node]))

    def _split(self, fault, *_):
        sides = " | ".join(" ".join(map(str, side)) for side in fault.sides)
        self._splits[len(self.events)] = fault
        self._note(0, "fault", f"partition {sides}")

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

    def trace(self) -> Trace:
        """Return what every node and client did, until now."""
        events = list(self.events)
        for at, fault in self._splits.items():
            until_s = self.now if fault.until_s is None else fault.until_s
            events[at] = events[at]._replace(end=min(until_s, self.now))
        clients = len(self.clients)
        return Trace(self.nodes + clients, events, who="node", clients=clients)

    def history(self) -> History:
        """Return what the clients asked and were told; unknown is what still waits."""
        waiting = [
            Operation(number, *asked.call, asked.since, None, "unknown")
            for number, asked in enumerate(self.clients)
            if asked.request is not None
        ]
        return History(self.operations + waiting)
