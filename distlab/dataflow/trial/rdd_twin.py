"""A worker with a trusted engine, and its twin, in which the learner's functions run.

    worker: chains, cache, shuffles, counts ── a step, records ──▶ its twin, in a guard
                                            ◀── sealed records ──
                                            ◀── what is in this line? ──

A worker runs nothing of theirs: what it counts is so, whatever its twin does. A twin
lasts for one stage of one job. So nothing is kept but what the engine keeps.
"""

import json
import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from distlab.calls.raised import Told
from distlab.dataflow.rdd.chunks import batches
from distlab.dataflow.rdd.executor import Done, Executor, Order, each_guarded, iterated
from distlab.dataflow.rdd.graph import Step, functions_in
from distlab.dataflow.trial import rdd_functions
from distlab.dataflow.trial.beside import (
    FRAME_BYTES,
    Ended,
    beside,
    end_as,
    told_of,
)
from distlab.dataflow.trial.sealed import Reader, Sealed, opening, seal
from distlab.processes.wire import Disconnected, receive_frame, send_frame

__all__ = ["Theirs", "TwinExecutor", "lines_file", "parsed_file"]

_twin = None  # of the stage that this worker works for


def lines_file(folder: str, table: int) -> str:
    """Return the path of the points of a table's lines."""
    return os.path.join(folder, f"lines-{int(table)}")


def parsed_file(folder: str, table: int) -> str:
    """Return the path of the file that gets a byte for every line that is parsed."""
    return os.path.join(folder, f"parsed-{int(table)}")


class Theirs:
    """A function that only a twin opens.

    shared: ("broadcast" or "accumulator", number) -> one that it uses.
    """

    def __init__(self, data: bytes, shared: dict):
        self.data, self.shared = data, shared

    def __call__(self, *args):
        return _twin.call(self, "call", *args)


class TwinExecutor(Executor):
    """Has each step in which there is a function of theirs done by the twin."""

    def run(self, order: Order) -> Done:
        """Do a task."""
        global _twin
        if _twin is None or _twin.program != order.program:
            if _twin is not None:
                _twin.end()
            _twin = _Twin(order)
        return super().run(order)

    def load(self, data: bytes) -> object:
        """Return the steps of a chain, or what to do last."""
        loaded = super().load(data)
        if isinstance(loaded, list):
            return list(map(_elsewhere, loaded))
        if callable(loaded) and _has_theirs(loaded):
            return partial(_last, loaded)
        return loaded


def _elsewhere(step):
    if step.kind != "piped" or not _has_theirs(step.compute):
        return step
    compute = _by_batches if step.elementwise else _as_a_whole
    return step._replace(compute=partial(compute, step))


def _has_theirs(compute):
    return any(type(function) is Theirs for function in functions_in(compute))


def _by_batches(step: Step, partition: int, records: Iterable) -> Iterator:
    for batch in batches(records):
        yield from _twin.call(step, "each", partition, batch)


def _as_a_whole(step: Step, partition: int, records: Iterable) -> list:
    return _twin.call(step, "pipe", partition, list(records))


def _last(function: Callable, partition: int, records: Iterable) -> object:
    return _twin.call(function, "last", partition, list(records))


class _Twin:
    """The twin, and what it may ask for while it does something."""

    def __init__(self, order):
        self.program = order.program
        self._folder = os.path.dirname(order.home)
        self._socket = None
        self._numbers, self._sent = {}, []  # of what it has, by what that is here
        self._shared, self._lines = {}, {}

    def end(self):
        if self._socket is not None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._socket.close()

    def call(self, thing, how, *args):
        """Return what came of a step or function; end this worker if the twin ended.

        Raises: Told.
        """
        if self._socket is None:
            self._socket, self._pid = beside(_live, (self._folder, "/proc"))
        try:
            send_frame(self._socket, opening((how, *self._known(thing), args)))
            while True:
                kind, said = Reader(receive_frame(self._socket, FRAME_BYTES)).load()
                if kind != "asked":
                    break
                send_frame(self._socket, opening(self._answer(*said)))
        except Disconnected:
            end_as(Ended(os.waitpid(self._pid, 0)[1]))
        except Exception:  # it is not our own side that speaks there
            os.kill(self._pid, signal.SIGKILL)
            end_as(Ended(os.waitpid(self._pid, 0)[1]))
        if kind == "raised":
            raise Told(said)
        return said

    def _known(self, thing):
        """Return the number of a thing, and it in bytes if the twin has not got it."""
        if id(thing) in self._numbers:
            return self._numbers[id(thing)], None
        number = self._numbers[id(thing)] = len(self._sent)
        self._sent.append(thing)  # so that its id remains its own
        return number, opening(thing, self._refer)

    def _refer(self, thing):
        if type(thing) is not Theirs:
            return None
        self._shared |= thing.shared
        return pickle.loads, (thing.data,)

    def _answer(self, what, *args):
        """Return (whether it is one, the answer)."""
        if what == "broadcast":
            return True, self._shared[what, args[0]].value
        if what == "accumulator":
            number, term = args
            if type(term) not in (int, float, complex):
                kind = term.kind if type(term) is Sealed else type(term).__name__
                return False, f"a {kind} cannot be added up here, a number can"
            return True, self._shared[what, number].add(term)
        table, line = args
        if table not in self._lines:
            with open(lines_file(self._folder, table)) as file:
                self._lines[table] = json.load(file)
        if line not in self._lines[table]:
            return False, f"{line!r} is no line of the input"
        with open(parsed_file(self._folder, table), "ab") as file:
            file.write(b".")
        return True, tuple(self._lines[table][line])


def _live(sock):
    """Be the twin, until its worker ends."""
    things = {}
    rdd_functions.ask = partial(_ask, sock)
    while True:
        try:
            how, number, data, args = pickle.loads(receive_frame(sock))
        except Disconnected:
            return
        try:
            if data is not None:
                things[number] = pickle.loads(data)
            said = seal(("said", _HOW[how](things[number], *args)))
        except BaseException as error:
            said = seal(("raised", told_of(error)))
        send_frame(sock, said)


def _ask(sock, *what):
    """Return the worker's answer to what the twin asks for in the middle of a call."""
    send_frame(sock, seal(("asked", what)))
    answered, answer = pickle.loads(receive_frame(sock))
    if not answered:
        raise ValueError(answer)
    return answer


_HOW = {
    "call": lambda function, *args: function(*args),
    "each": lambda step, partition, records: list(
        each_guarded([step], partition, records)
    ),
    "pipe": lambda step, partition, records: list(
        iterated(step, step.compute(partition, iter(records)))
    ),
    "last": lambda last, partition, records: last(partition, iter(records)),
}
