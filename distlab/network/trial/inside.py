"""The inside of a trial's processes: one node's objects, and whoever calls them.

What comes is pickled by the judge, who is trusted here. What goes back is JSON, in
which whatever the node made is sealed: the judge never opens it.
"""

import contextlib
import io
import json
import os
import pickle
import resource
import sys
import types
from collections.abc import Callable
from typing import Any

import cloudpickle

from distlab.cells import learn
from distlab.errors import InvalidArgument, NodeFailed
from distlab.network.effects import Hosted, made
from distlab.network.node import (
    CancelTimer,
    Node,
    Note,
    Refuse,
    Reply,
    Save,
    Send,
)
from distlab.network.plain import NotPlain
from distlab.network.schedules.chance import Chance
from distlab.network.schedules.frozen import freeze, thaw
from distlab.network.watchdog import Watchdog
from distlab.network.words import in_words
from distlab.processes import Child
from distlab.processes.guard import guard_for_good
from distlab.processes.memory import limit_memory
from distlab.trace import Call

__all__ = ["main"]

_LOCKED = ("distlab.agree", "distlab.grading", "distlab.launch", "ctypes", "_ctypes")
_LOCKED += ("multiprocessing", "mmap", "_posixshmem", "socket", "_socket", "gc")
_MEMORY_BYTES, _CPU_S = 2**31, 60
_PLAIN = (type(None), bool, int, float, str, bytes)


def main(child: Child) -> None:
    """Be a node's process, as long as the judge wants it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    packed, told = pickle.loads(child.receive())
    learn(told)
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    limit_memory(_MEMORY_BYTES)
    sys.setrecursionlimit(2000)
    _Life(child, packed).live()


class _Life:
    """All the objects of one node: those of a simulation, or a search's by number."""

    def __init__(self, child, packed):
        self.child, self.me = child, child.index
        self.packed, self.make = packed, None
        self.copied, self.hosts = False, []
        self.numbers, self.at = {}, None  # frozen -> number; the number of `host`

    def live(self):
        with Watchdog() as self.watchdog:
            guard_for_good(_LOCKED)
            while True:
                what, arguments = pickle.loads(self.child.receive())
                self.child.send(json.dumps(self._said(what, arguments)).encode())

    def _said(self, what, arguments):
        try:
            return getattr(self, f"_{what}")(*arguments)
        except NodeFailed as error:
            cause = error.cause
            raised = isinstance(cause, BaseException)
            kind = type(cause).__name__ if raised else ""
            return {"failed": (str(error), error.method, kind, str(cause))}
        except InvalidArgument as error:
            return {"failed": (str(error), "", "refused", "")}
        except NotPlain as error:
            story = f"node {self.me} holds {error}, which cannot be copied"
            return {"failed": (story, "", "holds", str(error))}
        except (Exception, SystemExit) as error:
            kind = type(error).__name__
            return {"failed": (f"{kind}: {error}", "", kind, str(error))}

    def _watched(self, function, *arguments):
        self.watchdog.calls += 1
        self.watchdog.inside = True
        try:
            return function(*arguments)
        finally:
            self.watchdog.inside = False

    # What the judge asks

    def _new(self, nodes, copied):
        if self.make is None:
            self.make = self._watched(pickle.loads, self.packed)[0]
            self.outside = _Outside(self.make)
        if copied != self.copied:
            self.copied, self.hosts, self.numbers, self.at = copied, [], {}, None
        node = self._watched(made, self.make, self.me, nodes)
        return self._kept(Hosted(node, self.me, nodes, chance=Chance), None)

    def _chance(self, state, seed):
        host = self._host(state)
        host.node.random = Chance(seed)
        return self._kept(host, state)

    def _start(self, state, saved):
        saved = {name: _opened(value) for name, value in saved.items()}
        return self._done(state, "start", saved)

    def _client(self, state, request, call):
        return self._done(state, "client", request, Call(*call))

    def _message(self, state, sender, message):
        return self._done(state, "message", sender, _opened(message))

    def _timer(self, state, name):
        return self._done(state, "timer", _opened(name))

    def _shared(self):
        return {"shared": self.outside.changed() if self.make else ""}

    def _done(self, state, method, *arguments):
        host = self._host(state)
        effects = self._watched(getattr(host, method), *arguments)
        told = [_told(effect, host) for effect in effects]
        return {"effects": told, **self._kept(host, state)}

    def _host(self, state):
        if self.copied and self.at != state:
            return thaw(self.hosts[state])
        return self.host if self.copied else self.hosts[state]

    def _kept(self, host, state):
        """Return the number of what a node is now."""
        if not self.copied:
            if state is None:
                self.hosts.append(host)
                state = len(self.hosts) - 1
            return {"state": state}
        self.at = None
        frozen = freeze(host)
        number = self.numbers.get(frozen)
        if number is None:
            number = self.numbers[frozen] = len(self.hosts)
            self.hosts.append(frozen)
        self.host, self.at = host, number
        return {"state": number}


def _told(effect, host):
    """Return an effect as JSON can hold it."""
    kind = type(effect)
    if kind is Send:
        return "send", effect.to, _sealed(effect.message)
    if kind is Reply:
        if not _is_plain(effect.result):
            story = f"node {host.me} answered {effect.result!r:.200}"
            hint = "A client is given numbers, strings, tuples, lists, dicts and sets."
            raise NodeFailed(
                f"{story}\n\n    {hint}",
                node=host.me,
                method="on_client",
                cause="it answered no plain data",
            )
        return "reply", effect.request, repr(effect.result)
    if kind is Refuse:
        return "refuse", effect.request, str(effect.why)[:200]
    if kind is CancelTimer:
        return "cancel", _sealed(effect.name)
    if kind is Save:
        return "save", effect.name, _sealed(effect.value)
    if kind is Note:
        return "note", str(effect.words)[:200]
    return "set", _sealed(effect.name), effect.after_s


def _is_plain(value):
    """Whether a value is of Python's own kinds, and so is what it looks like."""
    kind = type(value)
    if kind in _PLAIN:
        return kind is not float or value - value == 0
    if kind is dict:
        return all(_is_plain(part) for item in value.items() for part in item)
    return kind in (tuple, list, set) and all(map(_is_plain, value))


def _sealed(value: Any) -> str:
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.fast = True  # equal values are equal bytes
    try:
        pickler.dump(value)
        data = file.getvalue()
    except (pickle.PicklingError, AttributeError, ValueError, RecursionError):
        data = cloudpickle.dumps(value)
    words = in_words(value).replace("\0", " ")[:200]
    return f"{words}\0{data.decode('latin-1')}"


def _opened(sealed: str) -> Any:
    return pickle.loads(sealed.partition("\0")[2].encode("latin-1"))


class _Outside:
    """What a class's methods can reach and change, and what is of no node."""

    def __init__(self, make: Callable):
        kinds = make.__mro__ if isinstance(make, type) else ()
        self.kinds = [k for k in kinds if k is not Node and issubclass(k, Node)]
        self.before = self._now()

    def changed(self) -> str:
        """Return the name of the first that is another one now."""
        now = self._now()
        names = [name for name in now if self.before.get(name) != now[name]]
        return names[0] if names else ""

    def _now(self):
        found = {}
        for kind in self.kinds:
            for name, value in vars(kind).items():
                if name[:2] == "__":
                    continue
                function = getattr(value, "__func__", value)
                if isinstance(function, types.FunctionType):
                    self._add_function(found, function)
                else:
                    _add(found, f"{kind.__name__}.{name}", value)
        return found

    def _add_function(self, found, function):
        for number, value in enumerate(function.__defaults__ or ()):
            _add(found, f"default {number + 1} of {function.__name__}", value)
        for name in function.__code__.co_names:
            if name in function.__globals__:
                _add(found, name, function.__globals__[name])
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):
                _add(
                    found, f"a variable around {function.__name__}", cell.cell_contents
                )


def _add(found, name, value):
    if isinstance(value, type | types.ModuleType | types.FunctionType):
        return
    with contextlib.suppress(NotPlain, RecursionError):
        found[name] = freeze(value)
