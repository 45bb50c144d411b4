"""The process of a learner's driver program: all it has of the engine is what it asks.

    program: rdd.map(f) ── "method", RDD 3, map, function 7 ──▶ the engine
                        ◀── RDD 4 ─────────────────────────────
                        ◀── what is in function 7? ────────────  when a job begins

The engine's own classes say what an RDD and a Context can do; here are stand-ins for
objects of theirs. Whatever is changed in this process is changed nowhere else.
"""

import builtins
import pickle
import socket
from collections.abc import Callable
from functools import partial
from threading import RLock

from distlab import errors
from distlab.calls.travel import unpack
from distlab.dataflow.rdd.context import Context
from distlab.dataflow.rdd.graph import packed
from distlab.dataflow.rdd.levels import StorageLevel
from distlab.dataflow.rdd.rdd import RDD
from distlab.dataflow.rdd.shared import Accumulator, Broadcast
from distlab.dataflow.trial.beside import told_of
from distlab.dataflow.trial.rdd_functions import (
    ReceivedAccumulator,
    ReceivedBroadcast,
)
from distlab.dataflow.trial.sealed import Named, seal
from distlab.processes.wire import Disconnected, receive_frame, send_frame

__all__ = ["a_broadcast", "an_accumulator", "function", "live", "stand_in"]

_OF_DATA = ("broadcast", "parallelize", "accumulator")  # what they get is no function

_link = None


def live(sock: socket.socket) -> None:
    """Do what the engine's process asks for, until that ends."""
    global _link
    _link = _Link(sock)
    try:
        _link.serve()
    except Disconnected:
        return


class _Link:
    """What this process and the engine's ask of each other, one thing in another."""

    def __init__(self, sock):
        self.functions = []
        self.used = set()  # (what is shared, its number) by the function in hand
        self._socket = sock
        self._lock = RLock()

    def serve(self):
        while True:
            self._do(*self._receive())

    def ask(self, *what):
        """Return the engine's answer; meanwhile do what it asks for.

        Raises: what the engine raised.
        """
        with self._lock:
            self._send("asked", what)
            while True:
                kind, said = self._receive()
                if kind == "answer":
                    return said
                if kind == "failed":
                    raise _error(*said)
                self._do(kind, said)

    def method(self, thing, name, *args, **kwargs):
        """Return what a method of an RDD or the Context returns."""
        if name not in _OF_DATA:
            args = [self._given(each) for each in args]
            kwargs = {key: self._given(each) for key, each in kwargs.items()}
        return self.ask("method", thing, name, args, kwargs)

    def _given(self, thing):
        return _Function(thing) if callable(thing) else thing

    def _do(self, kind, said):
        try:
            said = "returned", getattr(self, f"_{kind}")(*said)
            frame = seal(said, self._refer)
        except BaseException as error:
            frame = seal(("raised", told_of(error)))
        send_frame(self._socket, frame)

    def _unpack(self, functions):
        self.functions += unpack(functions)

    def _call(self, function, args):
        return function(*args)

    def _pack(self, number):
        """Return a function as it is now, and what it uses of what is shared."""
        function, self.used = self.functions[number], set()
        return packed(function, [function]), sorted(self.used)

    def _send(self, *what):
        send_frame(self._socket, seal(what, self._refer))

    def _receive(self):
        return pickle.loads(receive_frame(self._socket))

    def _refer(self, thing):
        if type(thing) is _Rdd:
            return Named("rdd", (_number_of(thing),))
        if type(thing) is _Context:
            return Named("context", ())
        if type(thing) is StorageLevel:
            return Named("level", tuple(vars(thing).values()))
        if type(thing) is _Function:
            numbers = [n for n, each in enumerate(self.functions) if each is thing.own]
            if not numbers:
                self.functions.append(thing.own)
            return Named("function", tuple(numbers[:1] or [len(self.functions) - 1]))
        return None


class _Function:
    """Marks a function among the arguments of a method."""

    def __init__(self, own: Callable):
        self.own = own


def _error(kind, message):
    """Return an exception like the one that the engine raised."""
    if kind == "TaskFailed":
        how = {"task": "", "worker": 0, "cause": message, "trace": None}
        return errors.TaskFailed(message, **how)
    found = getattr(errors, kind, None) or getattr(builtins, kind, RuntimeError)
    try:
        return found(message)
    except TypeError:
        return RuntimeError(message)


class _Remote:
    """Something of the engine's."""

    __slots__ = ()

    def __getattr__(self, name):
        if callable(getattr(self.__class__, name, None)) and name[:1] != "_":
            return partial(_link.method, self, name)
        if name not in dir(self.__class__) and name in dir(object):
            raise AttributeError(name)
        return _link.ask("attribute", self, name)

    def __setattr__(self, name, value):
        kind = self.__class__.__name__
        raise AttributeError(f"{kind}.{name} is the engine's, and cannot be set")

    def __repr__(self):
        return _link.ask("attribute", self, "__repr__")


class _Rdd(_Remote):
    """Stands for one RDD."""

    __slots__ = ("_number",)
    __class__ = property(lambda self: RDD)
    __reduce__ = RDD.__reduce__

    def __add__(self, other):
        return self.union(other)


class _Context(_Remote):
    """Stands for the Context."""

    __slots__ = ()
    __class__ = property(lambda self: Context)
    __reduce__ = Context.__reduce__

    def broadcast(self, value):
        """Return a broadcast that knows its value in this process, too."""
        made = _link.method(self, "broadcast", value)
        made._value = [value]
        return made


def _number_of(rdd):
    return object.__getattribute__(rdd, "_number")


def stand_in(number: int | None = None) -> _Remote:
    """Return what stands for an RDD, or for the Context."""
    if number is None:
        return _Context()
    made = object.__new__(_Rdd)
    object.__setattr__(made, "_number", number)
    return made


def function(number: int) -> Callable:
    """Return a function by its number."""
    return _link.functions[number]


def a_broadcast(number: int) -> Broadcast:
    """Return what stands for a broadcast."""
    return _Broadcast(number, None, "", None)


class _Broadcast(Broadcast):
    """Stands for a broadcast."""

    def unpersist(self, blocking: bool = False) -> None:
        """Have the workers forget it."""
        _link.ask("shared", "broadcast", self._number, "unpersist")

    def destroy(self, blocking: bool = False) -> None:
        """Forget it everywhere."""
        _link.ask("shared", "broadcast", self._number, "destroy")
        self._value.clear()

    def __reduce__(self):
        super().__reduce__()  # which raises if it has been destroyed
        _link.used.add(("broadcast", self._number))
        return ReceivedBroadcast, (self._number, "")


def an_accumulator(number: int) -> Accumulator:
    """Return what stands for an accumulator."""
    return _Accumulator(number, None, None)


class _Accumulator(Accumulator):
    """Stands for an accumulator."""

    @property
    def value(self):
        """What has been added up by now."""
        return _link.ask("shared", "accumulator", self.aid, "value")

    @value.setter
    def value(self, value):
        _link.ask("shared", "accumulator", self.aid, "value", value)

    def add(self, term: object) -> None:
        """Add a term, in the driver."""
        _link.ask("shared", "accumulator", self.aid, "add", term)

    def __str__(self):
        return str(self.value)

    def __repr__(self):
        return f"Accumulator<id={self.aid}, value={self.value}>"

    def __reduce__(self):
        _link.used.add(("accumulator", self.aid))
        return ReceivedAccumulator, (self.aid,)
