"""The functions on trial, each worker's in a process beside it, and how it calls them.

    worker: the engine ── role, key, values ──▶ its twin: the functions, in a guard
                       ◀── JSON ──────────────

A worker runs nothing of theirs. It sees keys as plain data, by which it sorts, and the
values of a mapper or combiner sealed: as bytes, which only such a twin opens. So what a
worker counts is so, whatever becomes of its twin; and a twin can write nothing: a task
may run twice, and what it wrote then would be there twice.
"""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from numbers import Integral
from types import GeneratorType

import cloudpickle

from distlab.calls.raised import Told
from distlab.calls.travel import pack_functions, unpack
from distlab.dataflow.functions import (
    check_functions,
    check_mapped,
    check_pair,
    stable_hash,
)
from distlab.dataflow.trial.beside import (
    FRAME_BYTES,
    Ended,
    alone,
    cannot_be_read,
    told_of,
)
from distlab.dataflow.trial.plain import plain
from distlab.errors import InvalidArgument
from distlab.processes.child import keep_only
from distlab.processes.guard import guard_for_good
from distlab.processes.server_handle import trusted_path
from distlab.processes.wire import Disconnected, TooLong, receive_frame, send_frame

__all__ = ["Learners", "live"]

_CODE = (
    "import json, sys; sys.path[:], *rest = json.loads(sys.argv[1]); "
    "from distlab.dataflow.trial.learners import live; live(*rest)"
)


class Learners:
    """Functions in a process that is started when the first of them is called.

    packed: a mapper, reducer, combiner and partitioner, of which the last two may be
    None. seed: of that process's hashes of strings; None for that of this process.
    """

    def __init__(self, packed: bytes, seed: int | None = None):
        self._packed, self._seed = packed, seed
        self._socket = None

    def __reduce__(self):
        return type(self), (self._packed, self._seed)

    def call(self, role: str, *args: object) -> object:
        """Return what the process says that a function did.

        Raises: Told if the function raised; Ended.
        """
        if self._socket is None:
            self._start()
        try:
            send_frame(self._socket, pickle.dumps((role, args)))
            kind, said = json.loads(receive_frame(self._socket, FRAME_BYTES))
        except Disconnected:
            raise Ended(os.waitpid(self._pid, 0)[1]) from None
        except (TooLong, ValueError, TypeError, RecursionError):  # it is not ours
            os.kill(self._pid, signal.SIGKILL)
            raise Ended(os.waitpid(self._pid, 0)[1]) from None
        if kind == "raised":
            raise Told(said)
        return said

    def _start(self):
        self._socket, theirs = socket.socketpair()
        cannot_be_read()
        owner = os.getpid()
        if self._seed is None:
            self._pid = os.fork()
            if self._pid == 0:
                try:
                    live(*keep_only([theirs.fileno()]), owner)
                finally:
                    os._exit(0)
        else:
            argument = json.dumps([trusted_path(), theirs.fileno(), owner])
            self._pid = subprocess.Popen(
                [sys.executable, "-P", "-c", _CODE, argument],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONHASHSEED": str(self._seed)},
            ).pid
        theirs.close()
        send_frame(self._socket, pickle.dumps((sys.path, self._packed)))


def live(descriptor: int, owner: int) -> None:
    """Be the process of the functions, until its owner ends."""
    alone(owner)
    sock, twin = socket.socket(fileno=descriptor), _Twin()
    sys.path[:], packed = pickle.loads(receive_frame(sock))
    guard_for_good()
    while True:
        try:
            role, args = pickle.loads(receive_frame(sock))
        except Disconnected:
            return
        try:
            said = json.dumps(("said", getattr(twin, role)(packed, *args)))
        except BaseException as error:
            said = json.dumps(("raised", told_of(error)))
        send_frame(sock, said.encode())


class _Twin:
    """What a worker can ask for."""

    _functions = None

    def _call(self, packed, number, *args):
        if self._functions is None:
            self._functions = unpack(packed)
        return self._functions[number](*args)

    def fit(self, packed, combines):
        """Return whether the mapper is given the file's name; see `check_functions`."""
        mapper, reducer, combiner, _ = unpack(packed)
        combiner = combiner if combines else None
        return check_functions(mapper, reducer, combiner, None).named

    def make(self, packed, *args):
        """Return the functions packed anew, with the partitioner that the last made."""
        *functions, make = unpack(packed)
        partitioner = make(*args)
        if partitioner is None:
            name = getattr(make, "__name__", "the function")
            raise InvalidArgument(f"{name} returned None, and no function.")
        check_functions(*functions[:2], None, partitioner)
        packed = pack_functions((*functions, partitioner), "a worker")
        return packed.decode("latin-1")

    def map(self, packed, name, line):
        """Return (key, sealed value) pairs."""
        pairs = []
        for pair in check_mapped(self._call(packed, 0, name, line)):
            check_pair(pair)
            key, value = pair
            if type(key) is not str:
                stable_hash(key)  # refuses what the engine would refuse
            pairs.append((plain(key), _sealed(value)))
        return pairs

    def reduce(self, packed, key, values):
        """Return the values of a key as plain data, in a list if they are several."""
        result = self._call(packed, 1, key, map(_opened, values))
        if isinstance(result, GeneratorType):
            return {"several": list(map(plain, result))}
        return {"one": plain(result)}

    def combine(self, packed, key, values):
        """Return the sealed values that stand for some."""
        result = self._call(packed, 2, key, map(_opened, values))
        several = isinstance(result, GeneratorType)
        return list(map(_sealed, result if several else [result]))

    def choose(self, packed, key, reducers):
        """Return the number of the reducer that gets a key."""
        number = self._call(packed, 3, key, reducers)
        return int(number) if isinstance(number, Integral) else plain(number)


def _sealed(value):
    try:
        data = pickle.dumps(value, 3)  # a tuple of two numbers takes 10 bytes
    except (pickle.PicklingError, AttributeError, TypeError):
        data = cloudpickle.dumps(value)
    return data.decode("latin-1")


def _opened(sealed):
    return pickle.loads(sealed)
