"""`Trial`: nodes that `simulate` and `search` can run, and that live elsewhere."""

import ast
import itertools
import json
import pickle
import time
from collections.abc import Callable
from typing import Any, ClassVar

from distlab.calls.travel import Packed, pack_functions
from distlab.cells import cells
from distlab.network.node import (
    CancelTimer,
    Node,
    Note,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
)
from distlab.network.trial.disguise import Disguise
from distlab.processes import Ended, Frame, Processes
from distlab.processes.apart import TRIALS

__all__ = ["Proxy", "Sealed", "Told", "Trial"]

_INSIDE = "distlab.network.trial.inside"
_PATIENCE_S = 25.0
_MOST_HEARD = 1500  # a node that looks at a clock does so in each call
_MOST_BYTES = 2**22  # of what a node says at once


class Sealed(str):
    """What a node sends, saves, or calls a timer: it is opened by nodes only.

    Its text is how it is told in words, and then itself, pickled.
    """

    __slots__ = ()

    def __repr__(self):
        return self.partition("\0")[0]


class Told(Exception):
    """A node failed, as its own process tells it.

    said: the story. method, kind, words: where, the kind and the words of what was
    raised; the kind is "" if nothing was.
    """

    def __init__(self, said: str, method: str = "", kind: str = "", words: str = ""):
        super().__init__(said.partition("\n")[0])
        self.said, self.method, self.kind, self.words = said, method, kind, words


class Trial:
    """Processes for up to `nodes` nodes of a class, for as long as the body runs.

    live: makes nodes for a simulation. copied: makes nodes for a search, which can go
    back to what they were before. packed: the class, as it travels.

    Raises: CannotTravel; RuntimeError if the processes do not start.
    """

    _running: ClassVar[dict[int, "Trial"]] = {}
    _numbers = itertools.count(1)

    def __init__(self, make: Callable, nodes: int, disguise: Disguise | None = None):
        self.nodes = nodes
        self.disguise = disguise or Disguise(None)
        self.packed = pack_functions((make,), "a node")
        name = make.name if isinstance(make, Packed) else getattr(make, "__name__", "")
        self._name = name if name.isidentifier() else "Node"
        self.sizes: list[int] = []  # bytes of each message, as they were sent
        self.left: int | None = None  # how often nodes may be called, None for ever
        self.heard: list | None = None  # the first of what was said, if kept
        self.live, self.copied = self._makers()

    def _makers(self):
        self.number = next(self._numbers)
        kind = type(self._name, (Proxy,), {"__module__": __name__})

        def live(me, peers):
            return kind(me, peers, self.number, copied=False)

        def copied(me, peers):
            return kind(me, peers, self.number, copied=True)

        live.__name__ = copied.__name__ = self._name
        return live, copied

    def __enter__(self):
        self._processes = Processes(
            self.nodes,
            f"{_INSIDE}:main",
            preload=TRIALS,
            also=(_INSIDE,),
            alone=True,
            most_bytes=_MOST_BYTES,
        )
        for node in range(self.nodes):
            self._processes.send(node, pickle.dumps((self.packed, cells())))
        self._running[self.number] = self
        return self

    def __exit__(self, *_):
        self._running.pop(self.number, None)
        self._processes.stop()

    def shared(self) -> str:
        """Return what the nodes have written that belongs to no node, "" if nothing.

        Such as a dict of the class, or a global.
        """
        names = [self.ask(node, "shared") for node in range(self.nodes)]
        return next((str(name["shared"]) for name in names if name.get("shared")), "")

    def ask(self, node: int, what: str, *arguments: Any) -> dict:
        """Have a node's process do something, and return what it says of it.

        Raises: Told if the node failed, or its process did, or none are `left`.
        """
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Told("the nodes find no end", what, "storm")
        self._processes.send(node, pickle.dumps((what, arguments)))
        try:
            answer = json.loads(self._said(node, what))
        except (ValueError, RecursionError):
            raise Told(f"node {node}'s process ended", what, "died") from None
        if not isinstance(answer, dict):
            raise Told(f"node {node}'s process ended", what, "died")
        if "failed" in answer:
            told = answer["failed"]
            told = told[:4] if isinstance(told, list) else [told]
            raise Told(*(str(part)[:4000] for part in told))
        if self.heard is not None and len(self.heard) < _MOST_HEARD:
            self.heard.append((node, what, arguments, answer))
        return answer

    def differs(self, heard: list) -> str:
        """Ask the same as was asked of others; say what a node does otherwise, or "".

        heard: of a trial of the same nodes, from its beginning, and of no search.
        """
        for node, what, arguments, answer in heard:
            if self.ask(node, what, *arguments) != answer:
                return f"node {node}, in on_{what}"
        return ""

    def _said(self, node, what):
        """Return the next frame of a node; nobody else has been asked."""
        deadline = time.monotonic() + _PATIENCE_S
        while (left_s := deadline - time.monotonic()) > 0:
            for each in self._processes.poll(left_s):
                if each.index == node and isinstance(each, Frame):
                    return each.payload
                if each.index == node and isinstance(each, Ended):
                    raise Told(f"node {node}'s process ended", what, "died")
        raise Told(f"node {node} did not return", what, "slow")

    @classmethod
    def running(cls, number: int) -> "Trial":
        """Return the trial with a number."""
        return cls._running[number]


class Proxy(Node):
    """Stands for a node that lives in another process.

    state: the number, there, of what it is now.
    """

    def __init__(self, me: int, peers: tuple, trial: int, *, copied: bool):
        super().__init__(me, peers)
        self.trial, self.state = trial, 0
        self._ask("new", len(peers) + 1, copied)

    @property
    def random(self):
        """Nothing: the node's own chance is where the node is."""
        return None

    @random.setter
    def random(self, chance):
        """Give the node a chance of its own, from the same seed."""
        self._ask("chance", self.state, chance.getrandbits(64))

    def on_start(self, saved):
        """Have the node do it."""
        return self._ask("start", self.state, {n: str(v) for n, v in saved.items()})

    def on_client(self, request, call):
        """Have the node do it."""
        value = Trial.running(self.trial).disguise.put_on(call.value)
        told = tuple(call._replace(value=value))
        return self._ask("client", self.state, request, told)

    def on_message(self, sender, message):
        """Have the node do it."""
        return self._ask("message", self.state, sender, str(message))

    def on_timer(self, name):
        """Have the node do it."""
        return self._ask("timer", self.state, str(name))

    def _ask(self, what, *arguments):
        trial = Trial.running(self.trial)
        answer = trial.ask(self.me, what, *arguments)
        try:
            self.state = int(answer["state"])
            effects = [_effect(*told) for told in answer.get("effects", ())]
            effects = [_meant(effect, trial.disguise) for effect in effects]
        except _FORGED:
            raise Told(f"node {self.me}'s process ended", what, "died") from None
        sends = [effect for effect in effects if type(effect) is Send]
        trial.sizes += [len(send.message) for send in sends]
        return effects


_FORGED = (KeyError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


def _effect(kind, *parts):
    """Return an effect that was told as JSON, by whomever."""
    if kind == "send":
        return Send(_number(parts[0]), Sealed(parts[1]))
    if kind == "reply":
        return Reply(_number(parts[0]), ast.literal_eval(parts[1]))
    if kind == "refuse":
        return Refuse(_number(parts[0]), str(parts[1]))
    if kind == "set":
        return SetTimer(Sealed(parts[0]), float(parts[1]))
    if kind == "cancel":
        return CancelTimer(Sealed(parts[0]))
    if kind == "save":
        return Save(str(parts[0]), Sealed(parts[1]))
    return Note(str(parts[0]))


def _number(told):
    if type(told) is not int:
        raise TypeError(told)
    return told


def _meant(effect, disguise):
    if type(effect) is not Reply:
        return effect
    return effect._replace(result=disguise.taken_off(effect.result))
