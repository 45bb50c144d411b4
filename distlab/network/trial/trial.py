"""`Trial`: nodes that `simulate` and `search` can run, and that live elsewhere."""

import ast
import contextlib
import itertools
import json
import linecache
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, ClassVar

from distlab.calls.travel import pack_functions
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
from distlab.processes.server_handle import trusted_path

__all__ = ["Proxy", "Sealed", "Told", "Trial"]

_CODE = (
    "import json, sys; sys.path[:], *rest = json.loads(sys.argv[1]); "
    "from distlab.network.trial.inside import main; main(*rest)"
)
_PATIENCE_S = 25.0
_MOST_BYTES = 2**25


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
    back to what they were before.

    Raises: CannotTravel; RuntimeError if the processes do not start.
    """

    _running: ClassVar[dict[int, "Trial"]] = {}
    _numbers = itertools.count(1)

    def __init__(self, make: Callable, nodes: int):
        self.nodes = nodes
        self._packed = pack_functions((make,), "a node")
        self._name = str(getattr(make, "__name__", "Node"))
        self.sizes: list[int] = []  # bytes of each message, as they were sent
        self.left: int | None = None  # how often nodes may be called, None for ever
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
        pairs = [socket.socketpair() for _ in range(self.nodes)]
        theirs = [pair[1].fileno() for pair in pairs]
        self._folder = tempfile.TemporaryDirectory(prefix="distlab-")
        task = os.path.join(self._folder.name, "task")
        with open(task, "wb") as file:
            pickle.dump((self._packed, sys.path, _cells()), file)
        arguments = json.dumps([trusted_path(), task, theirs, os.getpid()])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE, arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=theirs,
            start_new_session=True,
            env=os.environ | {"PYTHONHASHSEED": "1"},
        )
        self._sockets, self._files = [], []
        for own, other in pairs:
            other.close()
            own.settimeout(_PATIENCE_S)
            self._sockets.append(own)
            self._files.append(own.makefile("rb"))
        self._running[self.number] = self
        return self

    def __exit__(self, *_):
        self._running.pop(self.number, None)
        for one in (*self._files, *self._sockets):
            one.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

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
        try:
            self._sockets[node].sendall(pickle.dumps((what, arguments)))
            said = self._files[node].readline(_MOST_BYTES)
        except TimeoutError:
            raise Told(f"node {node} did not return", what, "slow") from None
        except OSError:
            said = b""
        try:
            answer = json.loads(said)
        except (ValueError, RecursionError):
            raise Told(f"node {node}'s process ended", what, "died") from None
        if not isinstance(answer, dict):
            raise Told(f"node {node}'s process ended", what, "died")
        if "failed" in answer:
            raise Told(*(str(part)[:4000] for part in answer["failed"]))
        return answer

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
        return self._ask("client", self.state, request, tuple(call))

    def on_message(self, sender, message):
        """Have the node do it."""
        return self._ask("message", self.state, sender, str(message))

    def on_timer(self, name):
        """Have the node do it."""
        return self._ask("timer", self.state, str(name))

    def _ask(self, what, *arguments):
        answer = Trial.running(self.trial).ask(self.me, what, *arguments)
        try:
            self.state = int(answer["state"])
            effects = [_effect(*told) for told in answer.get("effects", ())]
        except (KeyError, ValueError, TypeError, SyntaxError):
            raise Told(f"node {self.me}'s process ended", what, "died") from None
        sends = [effect for effect in effects if type(effect) is Send]
        Trial.running(self.trial).sizes += [len(send.message) for send in sends]
        return effects


def _effect(kind, *parts):
    """Return an effect that was told as JSON."""
    if kind == "send":
        return Send(parts[0], Sealed(parts[1]))
    if kind == "reply":
        return Reply(parts[0], ast.literal_eval(parts[1]))
    if kind == "refuse":
        return Refuse(parts[0], str(parts[1]))
    if kind == "set":
        return SetTimer(Sealed(parts[0]), parts[1])
    if kind == "cancel":
        return CancelTimer(Sealed(parts[0]))
    if kind == "save":
        return Save(str(parts[0]), Sealed(parts[1]))
    return Note(str(parts[0]))


def _cells():
    """Return file name -> lines, of each cell that was run."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return {}
    named = [n for n in linecache.cache if shell.compile.format_code_name(n)]
    return {name: linecache.getlines(name) for name in named}
