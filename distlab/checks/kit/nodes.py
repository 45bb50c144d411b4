"""`on_nodes`: a learner's nodes, each in a process, on this process's virtual clock.

    simulate, search ── on_message(1, …) ──▶ process of node 0: the learner's object
     in this process ◀── effects: plain ──── process of node 1: another; they share no
                                             memory, not even a class's attributes

Messages, saved values and timer names stay bytes here, which only nodes unpickle.
`fuzz` has no time for that: its runs are each in one process, and are judged here by
what they report. A wrong one is repeated, shrunk and judged as above.

`clients_of` makes clients of a plan in text; `listed` gives their operations as text,
and `last_steps` a schedule, of both only the end: the player has all.
"""

import pickle
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, get_args

from distlab.calls.serialize import pack_functions
from distlab.calls.untrusted_data import read_untrusted
from distlab.cell_sources import cells
from distlab.checks.kit.grading import Inconclusive, Wrong
from distlab.checks.kit.hints import Hint
from distlab.checks.kit.node_process import OPAQUE
from distlab.checks.kit.ranks import seconds
from distlab.checks.kit.verdict_player import Played
from distlab.errors import (
    NodeFailed,
    NotDeterministic,
    NotSerializable,
    SandboxExceeded,
)
from distlab.history import History
from distlab.network import Client, Outcome, fuzz, node, search, simulate
from distlab.network.describe import shorten
from distlab.network.schedules.counterexample import Counterexample, NotFound
from distlab.network.schedules.monitors import new_monitors, violation
from distlab.network.schedules.properties import UntracedOutcome
from distlab.processes import FrameReceived, Processes
from distlab.trace import Call, Event, Operation

__all__ = [
    "NODE_HINTS",
    "NodeProcesses",
    "clients_of",
    "last_reads",
    "last_steps",
    "listed",
    "messages_between",
    "on_nodes",
    "require_loss",
]

_INSIDE = "distlab.checks.kit.node_process"
_MOST_BYTES = 2**22  # of one reply of a node
_MOST_CALLS = 4_000  # of methods in one run
_MOST_LISTED, _MOST_LETTERS = 12, 160  # lines of a verdict, and of one of them
_BATCH = 20  # runs of a fuzz that are reported together


@contextmanager
def on_nodes(
    make: Callable,
    nodes: int,
    *,
    without: Sequence[str] = (),
    shows: Sequence[str] = (),
) -> Iterator["NodeProcesses"]:
    """Run processes for up to `nodes` nodes of a learner's class during the body.

    without: modules that contain the solution, which the processes do not have.
    shows: attributes of the learner's objects, plain data, that monitors read.

    Raises: Wrong if the class cannot be pickled, or its processes exceed a limit.
    """
    try:
        packed = pack_functions((make,), "a node")
    except NotSerializable as error:
        raise Wrong(str(error), cannot_travel=True) from None
    processes = Processes(
        nodes, f"{_INSIDE}:main", preload=(_INSIDE,), most_bytes=_MOST_BYTES
    )
    try:
        setup = pickle.dumps((packed, cells(), without, shows))
        for index in range(nodes):
            processes.send(index, setup)
        yield NodeProcesses(processes, make, shows)
    except SandboxExceeded as error:
        found = f"Your nodes were ended, with all that they started: {error.why}."
        raise Wrong(found, exceeded=error.why) from None
    finally:
        processes.stop()


class NodeProcesses:
    """Processes of nodes, for one run after another.

    sizes: bytes of each message that the nodes sent in the last run, in order.
    why: what a monitor found wrong in the last simulation, "" if nothing.
    `simulate`, `search` and `fuzz` are those of `distlab.network`, but for the class;
    they raise Wrong with the failure if a node fails. Of a node of their outcomes
    `result_of("value")` is the result of its method `value`.
    """

    def __init__(self, processes: Processes, make: Callable, shows: Sequence[str]):
        self.sizes: list[int] = []
        self.why, self.shows = "", shows
        self._monitors, self._proxies = [], {}
        self._processes, self._make = processes, make

    def simulate(
        self, nodes: int, clients: Sequence, *, monitors: Iterable = (), **how: Any
    ) -> Outcome:
        """Run new nodes, watched by monitors, and remember what one finds wrong."""
        self.why, self._proxies = "", [None] * nodes
        self._monitors = new_monitors(monitors)
        try:
            return self._run(simulate, nodes, clients, **how)
        finally:
            self._monitors = []

    def fuzz(
        self,
        nodes: int,
        clients: Sequence,
        check: Callable,
        monitors: Callable[[], Iterable],
        *,
        runs: int,
        **how: Any,
    ) -> Counterexample | NotFound:
        """Run new nodes at random. `monitors()` makes those of a run."""
        seeds = [random.getrandbits(32) for _ in range(runs)]
        for at in range(0, runs, _BATCH):
            some = seeds[at : at + _BATCH]
            ask = partial(self._ask, 0, "fuzz", some, how, nodes, clients)
            for seed, failed, *record in self._carried_out(ask):
                if failed or _is_wrong(nodes, check, monitors(), *record):
                    how |= {"monitors": monitors(), "seed": seed, "within_s": 60}
                    found = self._run(fuzz, nodes, clients, check, runs=1, **how)
                    return found or self._differs()
        return NotFound(f"{runs} runs")

    def _differs(self):
        found = "Nodes that share a process did otherwise than nodes that share none."
        raise Wrong(found, chance=True)

    def search(self, nodes: int, *args: Any, **how: Any) -> Counterexample | NotFound:
        """Search the schedules of new nodes for one that breaks them."""
        return self._run(search, nodes, *args, **how)

    def _run(self, run, *args, **how):
        kinds, own = (list, dict, set), vars(self._make)  # class attributes are kept
        space = {name: value for name, value in own.items() if type(value) in kinds}
        space |= {"nodes": self, "searching": run is not simulate}
        make = type(self._make.__name__, (_Proxy,), space)
        limit = _MOST_CALLS if run is simulate else 10**9
        found = self._carried_out(partial(run, make, *args, **how), limit)
        if self._failed is not None:
            why = found.why.rpartition("raised NodeFailed: ")[2]  # and where, twice
            why = f"{why.rpartition(' in on_')[0] or why}\n{last_steps(found)}"
            self._failed.trace = found.outcome.trace
            raise self._wrong(self._failed, why)
        return found

    def _carried_out(self, run, limit=10**9):
        """Return the result of run(); raise Wrong if a node fails."""
        self._left, self._until = limit, time.monotonic() + 2 * seconds()
        self._failed = None
        self.sizes.clear()
        try:
            return run()
        except NodeFailed as error:
            raise self._wrong(error) from None
        except NotDeterministic as error:
            raise Wrong(str(error), chance=True) from None

    def sent(self, run: Outcome) -> list[tuple[Event, int]]:
        """Return (event, bytes) of each message between nodes in the last run."""
        return [*zip(messages_between(run), self.sizes, strict=True)]

    def observe(self, proxy: "_Proxy") -> None:
        """Show the monitors of a simulation a node that has acted."""
        if self._monitors:
            self._proxies[proxy.me] = proxy
        for monitor in self._monitors:
            name, subject = type(monitor).__name__, (self._proxies, proxy.me)
            self.why = self.why or violation(monitor.observe, *subject, name=name)

    def _wrong(self, error, found=""):
        own = error.cause if isinstance(error.cause, NodeFailed) else error
        if isinstance(own.cause, SandboxExceeded | Inconclusive):
            return own.cause
        few = error.trace is not None and self._left > 0
        picture = Played(error.trace, "The run that failed") if few else None
        return Wrong(found or str(own), picture=picture, failure=own, node=own.node)

    def _ask(self, index, what, *args):
        """Call `what` in a node's process; return its reply."""
        self._left -= 1
        if self._left < 0:
            raise self._failure(index, "the nodes find no end: they go on and on")
        self._processes.send(index, pickle.dumps((what, *args)))
        while (left_s := self._until - time.monotonic()) > 0:
            if index not in self._processes.alive:
                raise self._failure(index, f"node {index}'s process has ended")
            for each in self._processes.poll(left_s):
                if isinstance(each, FrameReceived) and each.index == index:
                    return self._read(index, each.payload)
        late = Inconclusive("A run took too long: is the machine busy? Run it again.")
        raise self._failure(index, str(late), late)

    def _read(self, index, payload):
        try:
            said = read_untrusted(payload)
        except NotSerializable as error:
            story = f"node {index} answered what is no plain data: {error}\n\n    A "
            story += "client is given numbers, strings, tuples, lists, dicts and sets."
            raise self._failure(index, story) from None
        if said[0] == "failed":
            raise self._failure(index, *said[1:])
        return said

    def _failure(self, index, story, cause=None):
        cause = cause or story
        self._failed = NodeFailed(story, node=index, method="", cause=cause)
        return self._failed


class _Opaque(bytes):
    """A message, saved value or timer name of a node; its repr is the node's own."""

    words = ""

    def __repr__(self):
        return self.words


class _Proxy(node.Node):
    """A proxy for a node in a run; `state`: the number of its state in its process."""

    nodes: NodeProcesses
    searching: bool

    def __init__(self, me, peers):
        super().__init__(me, peers)
        how = len(peers) + 1, self.searching
        self.state = self.nodes._ask(me, "new", *how)[0]

    def result_of(self, name):
        """Return the result of a method without arguments, and leave its state."""
        return self.nodes._ask(self.me, "result", self.state, name)[1]

    def on_start(self, saved):
        chance = self.random.getstate()
        if type(chance) is not int:
            chance = self.random.getrandbits(64)
        saved = {name: _plain_bytes(value) for name, value in saved.items()}
        return self._do("start", chance, saved)

    def on_client(self, request, call):
        return self._do("client", request, call)

    def on_message(self, sender, message):
        return self._do("message", sender, bytes(message))

    def on_timer(self, name):
        return self._do("timer", bytes(name))

    def on_synced(self, token):
        return self._do("synced", bytes(token))

    def _do(self, *what):
        ask = self.me, "do", self.state, self.clock_s, *what
        self.state, described, shown = self.nodes._ask(*ask)
        vars(self).update(zip(self.nodes.shows, shown, strict=True))
        self.nodes.observe(self)
        effects = [_effect(*each) for each in described]
        sent = [each.message for each in effects if type(each) is node.Send]
        self.nodes.sizes += map(len, sent)
        return effects


def _plain_bytes(value):
    return [*map(bytes, value)] if type(value) is list else bytes(value)


def _is_wrong(nodes, check, monitors, operations, changes):
    """Return True if a run is wrong by its operations, or by what its nodes showed."""
    monitors, seen = new_monitors(monitors), [None] * nodes
    for index, changed in changes:
        if changed is None:
            seen[index] = None
            continue
        seen[index] = seen[index] or SimpleNamespace()
        vars(seen[index]).update(changed)
        if any(violation(each.observe, seen, index) for each in monitors):
            return True
    history = History([Operation(*each) for each in operations])
    return bool(violation(check, UntracedOutcome(history, seen, [], 0.0)))


def _effect(kind, *fields):
    """Return the effect of its plain data."""
    fields = list(fields)
    if (at := OPAQUE.get(kind)) is not None:
        words, data = fields[at]
        fields[at] = _Opaque(data)
        fields[at].words = words
    return _KINDS[kind](*fields)


_KINDS = {kind.__name__: kind for kind in get_args(node.Effect)}


def _says(*words):
    """Return a `when`: a node failed, and its cause has one of these words."""
    return lambda f: any(each in str(f["failure"].cause) for each in words)


# fmt: off
NODE_HINTS = [
    Hint(lambda f: f["chance"], [
        "The same node, given the same, did something else. Chance comes from "
        "self.random alone, a node has no clock but self.clock_s, and nodes have no "
        "memory in common: what a node remembers is self's own, made in __init__.",
        "Search your class for random, time, id( and hash(, for a loop over a set, "
        "and for a list or dict made in the class body or outside of it. Each "
        "differs between two runs."]),
    Hint(_says("write this step", "this exercise asks"), [
        "Nothing of your own is written yet: the protocol itself is the exercise. What "
        "must a node know before it answers, and what if no other node answers?",
        "Take the event that comes first, on_start or on_client, and one node. Write "
        "down in words what it stores, whom it sends what, and which event it needs "
        "next. Then write only that method."]),
    Hint(lambda f: "yielded <generator" in str(f["failure"]), [
        "To yield what a generator yields, write `yield from`.",
        "A function with yield in it returns a generator when it is called. `yield` "
        "passes on that object itself, `yield from` each effect that it yields."]),
    Hint(_says("did not return"), [
        "A node never waits. It returns its effects, and is called again when a "
        "message comes or a timer runs out. Which loop can never end?",
        "The verdict names the method. Look there for a while loop, a sleep, or a "
        "recursion. What the loop waits for comes in a later call of on_message or "
        "on_timer: store the state in self."]),
    Hint(_says("find no end", "process has ended"), [
        "Messages lead to messages without end, or the process of the node has ended. "
        "What has nothing new to say need not be said again at once.",
        "Take two nodes, and let one message arrive. What does the other send then, "
        "and what does the first one send because of it? Does the chain end?"]),
    Hint(lambda f: f["node"] >= 0 and type(f["failure"].cause) is not NameError, [
        "The message above says what was returned, and what can be; or it names the "
        "line, and what the node was given.",
        "Call this method in a cell of its own, on a node that you make, with the "
        "same input, and look at list(...) of the result. Is each element a Send, a "
        "Reply, a SetTimer or another effect?"]),
    Hint(lambda f: f["cannot_travel"], [
        "The class runs in another Python, and travels there with what it uses. The "
        "message above names what cannot: usually it lives in the notebook alone, such "
        "as an open file or the result of a run.",
        "Find the name in your class that refers to it. Make it inside the method "
        "that needs it, or in __init__, from plain values."]),
]


def clients_of(plan: str, values: Sequence, **how: Any) -> list[Client]:
    """Return a client for each call of a plan: "0.1 0 write x 1, 0.5 2 read x".

    A call is a second, a node, an operation and its key; a number in the place of a
    value is the index of one of `values`, else it is the value. how: see `Client`.
    """
    clients = []
    for words in plan.split(", "):
        second, node, op, key, *value = words.split()
        value = [values[int(v)] if v.isdigit() else v for v in value]
        clients.append(Client(int(node), [Call(op, key, *value)], float(second), **how))
    return clients


def last_reads(nodes: int, keys: Iterable, start_s: float) -> list[Client]:
    """Return a client for each node that reads every key."""
    calls = [Call("read", key) for key in keys]
    return [Client(node, calls, start_s) for node in range(nodes)]


def messages_between(run: Outcome) -> list[Event]:
    """Return the events of messages from nodes to other nodes, in order."""
    nodes = run.trace.world_size - run.trace.clients
    events = [e for e in run.trace.events if e.kind == "send"]
    return [event for event in events if event.rank < nodes and event.peer < nodes]


def require_loss(run: Outcome) -> None:
    """Raise Inconclusive if nodes sent messages and a partition dropped none."""
    sent = messages_between(run)
    if sent and not any(event.label.startswith("dropped: ") for event in sent):
        raise Inconclusive("No message met the split: run this cell again.")


def listed(run: Outcome, operations: Iterable[Operation]) -> str:
    """Return operations of a run as text, one a line, with their times."""
    nodes = run.trace.world_size - run.trace.clients
    asked = [event for event in run.trace.events if event.rank >= nodes]
    node_of = {event.rank - nodes: event.peer for event in asked}
    lines = [_described(one, node_of.get(one.client)) for one in operations]
    return _last(lines, "operations")


def last_steps(found: Counterexample) -> str:
    """Return the last steps of a schedule that was found, as text, one a line."""
    return _last(repr(found.schedule).splitlines(), "steps")


def _last(lines, what):
    """Return the last of many lines, and how many there are."""
    last = [shorten(line, _MOST_LETTERS) for line in lines[-_MOST_LISTED:]]
    if len(last) < len(lines):
        many = f"The last {len(last)} of {len(lines)} {what}; the player has all:"
        last.insert(0, many)
    return "\n".join(last)


def _described(one, node):
    words = [word for word in (one.op, one.key, one.value) if word is not None]
    said = " ".join(map(str, words))
    if one.op == "read" and one.outcome == "ok":
        said += f" → {one.result!r}"
    said += {"ok": "", "failed": ", refused"}.get(one.outcome, ", unknown outcome")
    when = f"{one.start:.3f} to {one.end:.3f}" if one.end else f"from {one.start:.3f}"
    return f"  {when} s  client {one.client} at node {node}: {said}"
