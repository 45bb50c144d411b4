"""The nodes and clients of one run, and all that is written down of it.

Who decides what happens next, and when, is a subclass: a clock in `VirtualRun`, a list
of steps in `Rehearsal`. What it then does is the same in both, and is here.
"""

import random

from distlab.errors import NodeFailed
from distlab.history import History
from distlab.network.arguments import Asking
from distlab.network.effects import Hosted, made
from distlab.network.node import CancelTimer, Note, Reply, Save, Send, SetTimer
from distlab.network.outcome import Outcome
from distlab.network.schedules.frozen import freeze
from distlab.network.watchdog import Watchdog
from distlab.network.words import answer_in_words, call_in_words, shortened
from distlab.trace import Event, Operation, Trace

__all__ = ["Asked", "Stage"]


class Asked:
    """A client as it runs: what it asks, and what it waits for.

    calls: how many it has made. request, call, since: of the one that has no answer
    yet; request is None else. result: of the one before.
    """

    __slots__ = ("asking", "call", "calls", "client", "request", "result", "since")

    def __init__(self, number, client):
        self.client = client
        self.asking = Asking(number, client.calls)
        self.calls = 0
        self.request = self.call = self.since = self.result = None


class Stage:
    """What there is in a run, and what has happened so far.

    now: the time. hosts: node -> its `Hosted`, None while it is dead. saved: node ->
    its disk. events, operations: what happened so far.
    log: what every node was given and made of it, if somebody wants to compare.

    A subclass says what becomes of a message (`_send`), of a timer (`_set`, `_cancel`),
    and of a client that has its answer (`_free`).
    """

    _chance = random.Random

    def __init__(self, make, nodes, clients, seed):
        self.make, self.nodes, self.seed = make, nodes, seed
        self.now = 0.0
        self.events, self.operations, self.log = [], [], None
        self.saved = [{} for _ in range(nodes)]
        self.hosts, self._lives = [None] * nodes, [0] * nodes
        self.clients = [Asked(number, client) for number, client in enumerate(clients)]
        self.active = len(self.clients)
        self._asking = {}  # request -> the client that asked, and what
        self._splits = []  # index of its event, the end if it is known
        self._numbers = 0  # of messages
        self._watchdog = Watchdog()

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

    def _begin(self, node):
        """Make a node's object, and start it from its disk."""
        life = self._lives[node]
        new = self._call(None, made, self.make, node, self.nodes)
        lived = {"seed": f"{self.seed} {life}", "restarted": life > 0}
        host = Hosted(new, node, self.nodes, chance=self._chance, **lived)
        self.hosts[node] = host
        self._do(node, self._call(host, host.start, self.saved[node]))

    def _do(self, node, effects):
        """Let the effects of one node happen, in order."""
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                self._send(node, effect[0], effect[1])
            elif kind is SetTimer:
                self._set(node, effect.name, effect.after_s)
            elif kind is Save:
                self.saved[node][effect.name] = effect.value
            elif kind is CancelTimer:
                self._cancel(node, effect.name)
            elif kind is Note:
                self._note(node, "mark", str(effect.words))
            else:
                self._answer(node, effect)

    def _ask(self, number):
        """Have a client make its next call; return its request, None after the last."""
        asked = self.clients[number]
        call = asked.asking.next(asked.result)
        if call is None:
            self.active -= 1
            return None
        # The same number for the same call, in whatever order the clients make theirs.
        request = 1 + number + len(self.clients) * asked.calls
        asked.calls += 1
        asked.request, asked.call, asked.since = request, call, self.now
        self._asking[request] = number, call
        node = asked.client.node
        host = self.hosts[node]
        words = shortened(call_in_words(call))
        self._pass(self.nodes + number, node, words, host is not None)
        if host is not None:
            self._do(node, self._call(host, host.client, request, call))
        return request

    def _answer(self, node, effect):
        """Tell a client; one that has given up does not hear it."""
        number, call = self._asking.pop(effect.request)
        done = type(effect) is Reply
        refusal = f"refused: {effect.why}" if not done and effect.why else "refused"
        words = answer_in_words(call, effect.result) if done else refusal
        heard = self.clients[number].request == effect.request
        self._pass(node, self.nodes + number, shortened(words), heard)
        if heard:
            result = effect.result if done else None
            self._ended(number, self.now, "ok" if done else "failed", result)

    def _ended(self, number, end, outcome, result):
        asked = self.clients[number]
        what = (*asked.call, asked.since, end, outcome, result)
        self.operations.append(Operation(number, *what))
        asked.request, asked.result = None, result
        self._free(number)

    def _crash(self, node):
        self.hosts[node] = None
        self._note(node, "fault", "crash")

    def _restart(self, node):
        self._note(node, "fault", "restart")
        self._lives[node] += 1
        self._begin(node)

    def _split(self, words, until_s=None):
        self._splits.append((len(self.events), until_s))
        self._note(0, "fault", f"partition {words}")

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

    def trace(self) -> Trace:
        """Return what every node and client did, until now."""
        events = list(self.events)
        for at, until_s in self._splits:
            end = self.now if until_s is None else min(until_s, self.now)
            events[at] = events[at]._replace(end=end)
        clients = len(self.clients)
        return Trace(self.nodes + clients, events, who="node", clients=clients)

    def outcome(self) -> Outcome:
        """Return what there is now; the outcome of a call that waits is unknown."""
        waiting = [
            Operation(number, *asked.call, asked.since, None, "unknown")
            for number, asked in enumerate(self.clients)
            if asked.request is not None
        ]
        objects = [host and host.node for host in self.hosts]
        history = History(self.operations + waiting)
        return Outcome(history, self.trace(), objects, self.saved, self.now)

    def note_failure(self, error: NodeFailed) -> None:
        """Write a failure down, and give its exception the trace."""
        raised = isinstance(error.cause, BaseException)
        what = f"raised {type(error.cause).__name__}" if raised else "failed"
        self._note(error.node, "fault", what)
        error.trace = self.trace()
