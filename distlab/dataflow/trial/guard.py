"""What a worker calls in place of the functions on trial: the same, under watch.

    mapper(name, line)   ─▶ Mapper ── trouble? ──▶ the learner's, in a guard ─▶ pairs
    reducer(key, values) ─▶ Reducer ─────────────▶ the learner's ─▶ plain values

The learner's functions arrive packed and are unpacked by the worker, so that nothing of
theirs runs where a verdict is found. Inside the guard nothing can be written or sent: a
task may run twice, and what it wrote then would be there twice.
"""

import os
import time
from collections.abc import Iterator
from types import GeneratorType
from typing import NamedTuple

from distlab.calls.travel import unpack
from distlab.dataflow.trial.plain import plain
from distlab.processes.guard import Guard

__all__ = [
    "Combiner",
    "Learners",
    "Mapper",
    "Partitioner",
    "Reducer",
    "Trouble",
]

_WAIT_S = 4.0


class Learners:
    """The learner's functions in one process, unpacked when the first one is called.

    packed: a mapper, reducer, combiner and partitioner, of which the last two may be
    None.
    """

    def __init__(self, packed: bytes):
        self._packed = packed
        self._guard = None

    def __reduce__(self):
        return type(self), (self._packed,)

    def call(self, role: int, *args) -> object:
        """Return what one of them returns; a generator is guarded at each step."""
        if self._guard is None:
            self._guard = Guard()
            with self._guard.around():
                self._functions = unpack(self._packed)
        with self._guard.around():
            result = self._functions[role](*args)
        return self.steps(result) if isinstance(result, GeneratorType) else result

    def steps(self, iterator: Iterator) -> Iterator:
        """Yield what an iterator of theirs yields, guarded at each step."""
        nothing = object()
        while True:
            with self._guard.around():
                step = next(iterator, nothing)
            if step is nothing:
                return
            yield step


class Trouble(NamedTuple):
    """What befalls the first attempt at one line, once in all processes.

    kind: "fails", or "waits" until another attempt is at the line. folder: for marks.
    """

    kind: str
    name: str
    line: str
    folder: str

    def befall(self, name: str, line: str) -> None:
        """Let it happen, if this is the line, and the first time."""
        if (name, line) != (self.name, self.line):
            return
        if not self._mark("first"):
            self._mark("second")
        elif self.kind == "fails":
            raise RuntimeError("the disk did not answer (the check's own doing)")
        else:
            until = time.monotonic() + _WAIT_S
            second = os.path.join(self.folder, "second")
            while not os.path.exists(second) and time.monotonic() < until:
                time.sleep(0.005)

    def _mark(self, name):
        """Return whether this is the first to make the mark."""
        try:
            path = os.path.join(self.folder, name)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


class Mapper(NamedTuple):
    """The learner's mapper."""

    learners: Learners
    trouble: Trouble | None

    def __call__(self, name, line):
        if self.trouble is not None:
            self.trouble.befall(name, line)
        pairs = self.learners.call(0, name, line)
        return self.learners.steps(pairs) if isinstance(pairs, Iterator) else pairs


class Reducer(NamedTuple):
    """The learner's reducer; its values leave as plain data that cannot pretend."""

    learners: Learners

    def __call__(self, key, values):
        result = self.learners.call(1, key, values)
        return _plain(result) if isinstance(result, GeneratorType) else plain(result)


class Combiner(NamedTuple):
    """The learner's combiner; if regrouped, on small groups first, then on theirs."""

    learners: Learners
    regrouped: bool

    def __call__(self, key, values):
        if self.regrouped:
            values, groups = list(values), []
            while values:
                size = 1 + len(groups) % 3
                groups.append(values[:size])
                values = values[size:]
            values = [one for group in groups for one in self._combined(key, group)]
        yield from self._combined(key, values)

    def _combined(self, key, values):
        result = self.learners.call(2, key, iter(values))
        if isinstance(result, GeneratorType):
            yield from result
        else:
            yield result


class Partitioner(NamedTuple):
    """The learner's partitioner."""

    learners: Learners

    def __call__(self, key, reducers):
        return self.learners.call(3, key, reducers)


def _plain(values):
    for value in values:
        yield plain(value)
