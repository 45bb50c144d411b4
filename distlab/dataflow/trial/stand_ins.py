"""What a worker calls in place of the functions on trial.

mapper(name, line)   ─▶ Mapper ── trouble? ──▶ the learner's, elsewhere ─▶ pairs
reducer(key, values) ─▶ Reducer ─────────────▶ the learner's ─▶ plain values
"""

import os
import time
from typing import NamedTuple

from distlab.dataflow.trial.beside import Ended, end_as
from distlab.dataflow.trial.learners import Learners
from distlab.dataflow.trial.plain import value_of

__all__ = [
    "Combiner",
    "Mapper",
    "Partitioner",
    "Reducer",
    "Trouble",
]

_WAIT_S = 4.0


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
        told = _told(self.learners, "map", name, line)
        return [(value_of(key), sealed.encode("latin-1")) for key, sealed in told]


class Reducer(NamedTuple):
    """The learner's reducer; its values come as plain data that cannot pretend."""

    learners: Learners

    def __call__(self, key, values):
        told = _told(self.learners, "reduce", key, list(values))
        return iter(told["several"]) if "several" in told else told["one"]


class Combiner(NamedTuple):
    """The learner's combiner; if regrouped, on small groups first, then on theirs."""

    learners: Learners
    regrouped: bool

    def __call__(self, key, values):
        values = list(values)
        if self.regrouped:
            groups = []
            while values:
                size = 1 + len(groups) % 3
                groups.append(values[:size])
                values = values[size:]
            values = [one for group in groups for one in self._combined(key, group)]
        yield from self._combined(key, values)

    def _combined(self, key, values):
        told = _told(self.learners, "combine", key, values)
        return [sealed.encode("latin-1") for sealed in told]


class Partitioner(NamedTuple):
    """The learner's partitioner."""

    learners: Learners

    def __call__(self, key, reducers):
        return value_of(_told(self.learners, "choose", key, reducers))


def _told(learners, role, *args):
    """Return what a function's process says; a worker ends as that process does."""
    try:
        return learners.call(role, *args)
    except Ended as ended:
        end_as(ended)
