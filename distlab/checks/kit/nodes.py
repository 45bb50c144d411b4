"""`on_nodes`: a learner's nodes, each in a process, on this process's virtual clock.

    simulate, search ── on_message(1, …) ──▶ process of node 0: the learner's object
     in this process ◀── effects: plain ──── process of node 1: another; they share no
                                             memory, not even a class's attributes

Messages, saved values and timer names stay bytes here, which only nodes unpickle.

`clients_of` makes clients of a plan in text; `listed` gives their operations as text.
"""

import pickle
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from distlab.network import Client, Outcome, node, search, simulate
from distlab.network.schedules.counterexample import Counterexample, NotFound
from distlab.processes import FrameReceived, Processes
from distlab.trace import Call, Event, Operation

__all__ = [
    "NODE_HINTS",
    "NodeProcesses",
    "clients_of",
    "last_reads",
    "listed",
    "messages_between",
    "on_nodes",
    "require_loss",
]

_INSIDE = "distlab.checks.kit.node_process"
_MOST_BYTES = 2**22  # of one reply of a node
_MOST_CALLS = 4_000  # of methods in one run


@contextmanager
def on_nodes(
    make: Callable, nodes: int, *, without: Sequence[str] = ()
) -> Iterator["NodeProcesses"]:
    """Run processes for up to `nodes` nodes of a learner's class during the body.

    without: modules that contain the solution, which the processes do not have.

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
        setup = pickle.dumps((packed, cells(), without, random.getrandbits(64)))
        for index in range(nodes):
            processes.send(index, setup)
        yield NodeProcesses(processes, make)
    except SandboxExceeded as error:
        found = f"Your nodes were ended, with all that they started: {error.why}."
        raise Wrong(found, exceeded=error.why) from None
    finally:
        processes.stop()


class NodeProcesses:
    """Processes of nodes, for one run after another.

    sizes: bytes of each message that the nodes sent in the last run, in order.
    `simulate` and `search` are those of `distlab.network`, but for the nodes' class;
    both raise Wrong with the failure if a node fails. Of a node of their outcomes
    `result_of("value")` is the result of its method `value`.
    """

    def __init__(self, processes: Processes, make: Callable):
        self.sizes: list[int] = []
        self._processes, self._make = processes, make

    def simulate(self, nodes: int, clients: Sequence, **how: Any) -> Outcome:
        """Run new nodes."""
        return self._run(simulate, nodes, clients, **how)

    def search(self, nodes: int, *args: Any, **how: Any) -> Counterexample | NotFound:
        """Search the schedules of new nodes for one that breaks them."""
        return self._run(search, nodes, *args, **how)

    def _run(self, run, *args, **how):
        self._left = 10**9 if run is search else _MOST_CALLS
        self._until = time.monotonic() + 2 * seconds()
        self._failed = None
        self.sizes.clear()
        kinds, own = (list, dict, set), vars(self._make)  # class attributes are kept
        space = {name: value for name, value in own.items() if type(value) in kinds}
        space |= {"nodes": self, "searching": run is search}
        try:
            found = run(type(self._make.__name__, (_Proxy,), space), *args, **how)
        except NodeFailed as error:
            raise self._wrong(error) from None
        except NotDeterministic as error:
            raise Wrong(str(error), chance=True) from None
        if self._failed is not None:
            raise self._wrong(self._failed, f"\n\n{found.schedule!r}")
        return found

    def _wrong(self, error, more=""):
        own = error.cause if isinstance(error.cause, NodeFailed) else error
        if isinstance(own.cause, SandboxExceeded | Inconclusive):
            return own.cause
        few = error.trace is not None and self._left > 0
        picture = Played(error.trace, "The run that failed") if few else None
        return Wrong(f"{own}{more}", picture=picture, failure=own, node=own.node)

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
        return self._do("start", {name: bytes(value) for name, value in saved.items()})

    def on_client(self, request, call):
        return self._do("client", request, call)

    def on_message(self, sender, message):
        return self._do("message", sender, bytes(message))

    def on_timer(self, name):
        return self._do("timer", bytes(name))

    def _do(self, *what):
        self.state, described = self.nodes._ask(self.me, "do", self.state, *what)
        effects = [_effect(*each) for each in described]
        sent = [each.message for each in effects if type(each) is node.Send]
        self.nodes.sizes += map(len, sent)
        return effects


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
        "self.random alone, a node has no clock, and nodes have no memory in common: "
        "what a node remembers is self's own, made in __init__.",
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
    return "\n".join(_described(one, node_of.get(one.client)) for one in operations)


def _described(one, node):
    words = [word for word in (one.op, one.key, one.value) if word is not None]
    said = " ".join(map(str, words))
    if one.op == "read" and one.outcome == "ok":
        said += f" → {one.result!r}"
    said += {"ok": "", "failed": ", refused"}.get(one.outcome, ", unknown outcome")
    when = f"{one.start:.3f} to {one.end:.3f}" if one.end else f"from {one.start:.3f}"
    return f"  {when} s  client {one.client} at node {node}: {said}"
