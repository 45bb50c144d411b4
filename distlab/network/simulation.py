"""`Simulation`: nodes and clients in this process, and the record of their events.

A subclass decides what happens next, and when: a virtual clock in `SimulatedRun`, the
steps of a schedule in `_ReplayRun`. The handling of each event is the same in both, and
is here.
"""

import random

from distlab.errors import NodeFailed
from distlab.history import History
from distlab.network.client import ClientSession
from distlab.network.copies import freeze
from distlab.network.describe import describe_call, describe_response, shorten
from distlab.network.node import CancelTimer, Note, Reply, Save, Send, SetTimer
from distlab.network.node_host import NodeHost, make_node
from distlab.network.outcome import Outcome
from distlab.network.watchdog import Watchdog
from distlab.trace import Event, Trace

__all__ = ["Simulation"]


class Simulation:
    """The state of a run, and its events so far.

    now: the time. hosts: node -> its `NodeHost`, None while it is dead. saved: node ->
    its disk. sessions: the clients. active: how many of them are not done yet.
    events, operations: recorded so far.
    log: the input and effects of every call of a node, to compare two runs; or None.

    A subclass handles a message (`_send`), a timer (`_set`, `_cancel`), and a client
    that has its response (`_free`).
    """

    _generator = random.Random  # the class of every node's `random`

    def __init__(self, make, nodes, clients, seed):
        self.make, self.nodes, self.seed = make, nodes, seed
        self.now = 0.0
        self.events, self.operations, self.log = [], [], None
        self.saved = [{} for _ in range(nodes)]
        self.hosts, self._restarts = [None] * nodes, [0] * nodes
        self.sessions = [
            ClientSession(number, client) for number, client in enumerate(clients)
        ]
        self.active = len(self.sessions)
        self._asked = {}  # request -> (client, call)
        self._partitions = []  # index of its event, the end if it is known
        self._messages = 0  # their number so far
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

    def _start(self, node):
        """Make a node's object, and start it from its disk."""
        restarts = self._restarts[node]
        new = self._call(None, make_node, self.make, node, self.nodes)
        how = {"seed": f"{self.seed} {restarts}", "restarted": restarts > 0}
        host = NodeHost(new, node, self.nodes, generator=self._generator, **how)
        self.hosts[node] = host
        self._do(node, self._call(host, host.start, self.saved[node]))

    def _do(self, node, effects):
        """Apply the effects of one node, in order."""
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
                self._respond(node, effect)

    def _invoke(self, number):
        """Make a client's next call; return its request, None after the last."""
        session = self.sessions[number]
        call = session.next_call()
        if call is None:
            self.active -= 1
            return None
        # The same number for the same call, in whatever order the clients make theirs.
        request = 1 + number + len(self.sessions) * session.calls
        session.invoke(request, call, self.now)
        self._asked[request] = number, call
        node = session.client.node
        host = self.hosts[node]
        words = shorten(describe_call(call))
        self._pass(self.nodes + number, node, words, host is not None)
        if host is not None:
            self._do(node, self._call(host, host.client, request, call))
        return request

    def _respond(self, node, effect):
        """Send a client a response; it is dropped if the client has timed out."""
        number, call = self._asked.pop(effect.request)
        done = type(effect) is Reply
        refusal = f"refused: {effect.why}" if not done and effect.why else "refused"
        words = describe_response(call, effect.result) if done else refusal
        heard = self.sessions[number].request == effect.request
        self._pass(node, self.nodes + number, shorten(words), heard)
        if heard:
            result = effect.result if done else None
            self._end(number, self.now, "ok" if done else "failed", result)

    def _time_out(self, number):
        self._end(number, None, "unknown", None)

    def _end(self, number, end_s, outcome, result):
        self.operations.append(self.sessions[number].end(end_s, outcome, result))
        self._free(number)

    def _crash(self, node):
        self.hosts[node] = None
        self._note(node, "fault", "crash")

    def _restart(self, node):
        self._note(node, "fault", "restart")
        self._restarts[node] += 1
        self._start(node)

    def _split(self, sides, until_s=None):
        self._partitions.append((len(self.events), until_s))
        self._note(0, "fault", f"partition {sides}")

    def _pass(self, src, dst, words, heard):
        """Record a message between a client and its node, which takes no time."""
        self._messages += 1
        label = words if heard else f"dropped: {words}"
        self._event(src, "send", dst, self._messages, label)
        if heard:
            self._event(dst, "recv", src, self._messages, words)

    def _event(self, who, kind, peer, step, label):
        event = Event(who, self.now, self.now, kind, peer, 0, step, label)
        self.events.append(event)

    def _note(self, node, kind, words):
        self._event(node, kind, None, 0, words)

    def trace(self) -> Trace:
        """Return the trace of all nodes and clients, until now."""
        events = list(self.events)
        for at, until_s in self._partitions:
            end = self.now if until_s is None else min(until_s, self.now)
            events[at] = events[at]._replace(end=end)
        clients = len(self.sessions)
        return Trace(self.nodes + clients, events, who="node", clients=clients)

    def outcome(self) -> Outcome:
        """Return the present outcome; calls without a response are unknown."""
        waiting = [s.operation() for s in self.sessions if s.request is not None]
        objects = [host and host.node for host in self.hosts]
        history = History(self.operations + waiting)
        return Outcome(history, self.trace(), objects, self.saved, self.now)

    def note_failure(self, error: NodeFailed) -> None:
        """Record a failure, and attach the trace to its exception."""
        raised = isinstance(error.cause, BaseException)
        what = f"raised {type(error.cause).__name__}" if raised else "failed"
        self._note(error.node, "fault", what)
        error.trace = self.trace()
