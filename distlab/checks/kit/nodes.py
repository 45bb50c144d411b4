"""`on_nodes`: a learner's nodes, each in a process of its own, on a clock here.

    simulate, search ── on_message(1, …) ──▶ process of node 0: the learner's object
     in this process ◀── effects: plain ──── process of node 1: another; no memory is
                                             in both, whatever is written into a class

What the nodes send, save and call their timers stays bytes here, which only nodes read.
"""

import pickle
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, get_args

from distlab.calls.travel import pack_functions, unpack_plain
from distlab.cells import cells
from distlab.checks.kit.hints import Hint
from distlab.checks.kit.node_inside import OPAQUE
from distlab.checks.kit.pictures import Played
from distlab.checks.kit.ranks import seconds
from distlab.checks.kit.verdict import Inconclusive, Wrong
from distlab.errors import CannotTravel, NodeFailed, NotDeterministic, SandboxExceeded
from distlab.network import Outcome, node, search, simulate
from distlab.network.schedules.found import Found, NotFound
from distlab.processes import Frame, Processes

__all__ = ["NODE_HINTS", "Nodes", "on_nodes"]

_INSIDE = "distlab.checks.kit.node_inside"
_MOST_BYTES = 2**22  # of what a node says at once
_MOST_CALLS = 4_000  # of methods in one run
_SLOWEST = 4  # times what one answer may take, for a whole run


@contextmanager
def on_nodes(
    make: Callable, nodes: int, *, without: Sequence[str] = ()
) -> Iterator["Nodes"]:
    """Have processes for up to `nodes` nodes of a learner's class, for the body.

    without: modules that the exercise asks for, which the processes do not have.

    Raises: Wrong if the class cannot travel, or its processes exceed a limit.
    """
    try:
        packed = pack_functions((make,), "a node")
    except CannotTravel as error:
        raise Wrong(str(error), cannot_travel=True) from None
    processes = Processes(
        nodes, f"{_INSIDE}:main", preload=(_INSIDE,), most_bytes=_MOST_BYTES
    )
    try:
        setup = pickle.dumps((packed, cells(), without, random.getrandbits(64)))
        for index in range(nodes):
            processes.send(index, setup)
        yield Nodes(processes, getattr(make, "__name__", repr(make)))
    except SandboxExceeded as error:
        found = f"Your nodes were ended, with all that they started: {error.why}."
        raise Wrong(found, exceeded=error.why) from None
    finally:
        processes.stop()


class Nodes:
    """Processes of nodes, for one run after another.

    sizes: bytes of each message that the nodes sent in the last run, in order.
    """

    def __init__(self, processes: Processes, name: str):
        self.sizes: list[int] = []
        self._processes, self._name = processes, name

    def simulate(self, nodes: int, clients: Sequence, **how: Any) -> Outcome:
        """Run new nodes as `distlab.network.simulate` does.

        Raises: Wrong with the failure if a node fails.
        """
        with self._run(searching=False) as make:
            return simulate(make, nodes, clients, **how)

    def search(
        self, nodes: int, clients: Sequence, check: Callable, **how: Any
    ) -> Found | NotFound:
        """Search as `distlab.network.search` does.

        Raises: Wrong with the failure, and the steps to it, if a node fails.
        """
        with self._run(searching=True) as make:
            found = search(make, nodes, clients, check, **how)
            if self._failed is not None:
                raise self._wrong(self._failed, f"\n\n{found.schedule!r}")
            return found

    @contextmanager
    def _run(self, searching):
        self._left = 10**9 if searching else _MOST_CALLS
        self._until = time.monotonic() + _SLOWEST * seconds()
        self._failed = None
        self.sizes.clear()
        try:
            yield type(self._name, (_Proxy,), {"nodes": self, "searching": searching})
        except NodeFailed as error:
            if isinstance(error.cause, SandboxExceeded | Inconclusive):
                raise error.cause from None
            raise self._wrong(error) from None
        except NotDeterministic as error:
            name = self._ask(error.node, "shared")
            story = str(error)
            if name:  # the story's own last words speak of chance
                told = f"    {name} belongs to the class, and not to a node."
                story = f"{story.rpartition(chr(10))[0]}\n{told}"
            raise Wrong(story, chance=True, shared=name or None) from None

    def _wrong(self, error, more=""):
        own = error.cause if isinstance(error.cause, NodeFailed) else error
        few = error.trace is not None and self._left > 0
        picture = Played(error.trace, "The run that failed") if few else None
        return Wrong(f"{own}{more}", picture=picture, failure=own, node=own.node)

    def _ask(self, index, what, *args):
        """Have a node's process do something; return what it says.

        Raises: NodeFailed if the node has failed, or its process.
        """
        self._left -= 1
        if self._left < 0:
            raise self._failure(index, "the nodes find no end: they go on and on")
        self._processes.send(index, pickle.dumps((what, *args)))
        deadline = time.monotonic() + seconds()
        if deadline > self._until:
            raise Inconclusive(
                "A run took too long: is the machine busy? Run it again."
            )
        while (left_s := deadline - time.monotonic()) > 0:
            if index not in self._processes.alive:
                raise self._failure(index, f"node {index}'s process has ended")
            for each in self._processes.poll(left_s):
                if isinstance(each, Frame) and each.index == index:
                    return self._read(index, each.payload)
        raise self._failure(index, f"node {index} did not return in time")

    def _read(self, index, payload):
        try:
            said = unpack_plain(payload)
            if said[:1] != ("failed",):
                return said
            _, story, method, cause = said
        except (CannotTravel, TypeError, ValueError):
            raise self._nonsense(index) from None
        raise self._failure(index, str(story), str(method), cause)

    def _nonsense(self, index):
        return self._failure(index, f"node {index}'s process has ended, or lies")

    def _failure(self, index, story, method="", cause=None):
        about = {"node": index, "method": method, "cause": cause or story}
        self._failed = NodeFailed(story, **about)
        return self._failed


class _Opaque(bytes):
    """What a node sent, saved or called a timer, shown as its node's own words."""

    def __new__(cls, data: bytes, words: str):
        self = super().__new__(cls, data)
        self.words = words
        return self

    def __repr__(self):
        return self.words


class _Proxy(node.Node):
    """Stands for a node in a run; `state`: the number, there, of what it is now."""

    nodes: Nodes
    searching: bool

    def __init__(self, me, peers):
        super().__init__(me, peers)
        how = len(peers) + 1, self.searching
        self.state = self.nodes._ask(me, "new", *how)[0]

    def on_start(self, saved):
        return self._do("start", {name: bytes(value) for name, value in saved.items()})

    def on_client(self, request, call):
        return self._do("client", request, call)

    def on_message(self, sender, message):
        return self._do("message", sender, bytes(message))

    def on_timer(self, name):
        return self._do("timer", bytes(name))

    def _do(self, *what):
        said = self.nodes._ask(self.me, "do", self.state, *what)
        try:
            self.state, effects = said
            effects = [_effect(*told) for told in effects]
        except (TypeError, ValueError, KeyError, IndexError):
            raise self.nodes._nonsense(self.me) from None
        sent = [each.message for each in effects if type(each) is node.Send]
        self.nodes.sizes += map(len, sent)
        return effects


def _effect(kind, *fields):
    """Return an effect that was told as plain data, by whomever."""
    fields, at = list(fields), OPAQUE.get(kind)
    if at is not None:
        words, data = fields[at]
        fields[at] = _Opaque(data, str(words))
    return _KINDS[kind](*fields)


_KINDS = {kind.__name__: kind for kind in get_args(node.Effect)}


def _says(*words):
    """Fits where a node failed for a cause that is a sentence with one of these."""
    return lambda f: any(each in _sentence(f) for each in words)


def _sentence(facts):
    return facts["node"] is not None and str(facts["failure"].cause)


# fmt: off
NODE_HINTS = [
    Hint(lambda f: f["shared"], [
        "Nodes are on different machines and have no memory in common. What a node "
        "remembers is self's own, made in __init__.",
        "The verdict names what belongs to nobody. A list or dict in the body of the "
        "class, or as the default of an argument, is made once for all nodes."]),
    Hint(lambda f: f["chance"], [
        "The same node, given the same, did something else. Chance comes from "
        "self.random alone; a node has no clock, and no memory but self.",
        "Look for what differs between two runs of the same code: the clock, the "
        "module random, a global, the number that id gives. Which of these decides "
        "what your node says?"]),
    Hint(_says("this exercise asks"), [
        "The library's own stores are not there where your nodes run: the protocol "
        "itself is the exercise.",
        "The message names what was called. Which of the classes given in the notebook "
        "do you build on, and which comes from distlab itself?"]),
    Hint(_says("write this step"), [
        "Nothing of your own is written yet. What must a node know before it answers, "
        "and what may it say when it does not hear from the others?",
        "Begin with the smallest method, the one that is called when a client asks, "
        "and have it handle a read of a key that nobody has written."]),
    Hint(_says("did not return"), [
        "A node never waits. It returns its effects, and is called again when a "
        "message comes or a timer runs out.",
        "Look for a loop in the method that the verdict names. What has to change so "
        "that it ends, and can that change while the method runs?",
        "A node asks at second 0 and wants to give up at second 0.2. It cannot sleep "
        "until then. Which effect makes somebody call it again at that time?"]),
    Hint(_says("find no end"), [
        "Messages lead to messages without end. What has nothing new to say need not "
        "be said again at once.",
        "Take two nodes, and let one message arrive. Write down what the other sends "
        "because of it, and what that makes the first one send. Does the chain end?"]),
    Hint(_says("process has ended"), [
        "The process of the node has ended, or had not enough memory. A node lives as "
        "long as its machine.",
        "Does a method call exit, or put something into a list without end?"]),
    Hint(lambda f: isinstance(f["failure"].cause, str) and f["node"] is not None, [
        "The message above says what was returned, and what can be.",
        "A method is a generator as soon as it has a yield, and everything that it "
        "yields has to be an effect: a message, a timer, an answer or a refusal. What "
        "do you yield, or return, besides?"]),
    Hint(lambda f: f["node"] >= 0 and type(f["failure"].cause) is not NameError, [
        "The message above names the line, and what the node was given.",
        "Read its last line first: what kind of thing was there where another was "
        "expected? Is it a key that the node has never seen, a first message, an empty "
        "list of answers?"]),
    Hint(lambda f: f["cannot_travel"], [
        "The class runs in another Python. It travels there with what it uses.",
        "The message above names what cannot travel. Usually it lives in the notebook "
        "alone, such as an open file or the result of a run: does the class mention a "
        "name from another cell?"]),
]
