"""Values that all tasks share: broadcast to them, or added up from them."""

import os
import pickle
from collections.abc import Callable
from typing import Generic, TypeVar

from distlab.errors import InvalidArgument

__all__ = ["Accumulator", "AccumulatorParam", "Broadcast", "begin", "fetched"]

T = TypeVar("T")

_fetched = {}  # in a worker: path -> value, once for all its tasks
_fetches = 0
_accumulators = {}  # in a worker: number -> what this task adds to


class Broadcast(Generic[T]):
    """A value that every worker fetches once, when a task of its first uses it.

    value: the value, in the notebook and in tasks.
    """

    def __init__(self, number: int, value: T, path: str, forget: Callable):
        self._number = number
        self._value = [value]
        self._path = path
        self._forget = forget

    @property
    def value(self) -> T:
        """The value."""
        if not self._value:
            raise InvalidArgument(f"Broadcast {self._number} has been destroyed.")
        return self._value[0]

    def unpersist(self, blocking: bool = False) -> None:
        """Have the workers forget it; a task that uses it fetches it again."""
        self._forget(self._path)

    def destroy(self, blocking: bool = False) -> None:
        """Forget it everywhere; it cannot be used after that."""
        if self._value:
            self._forget(self._path)
            self._value.clear()
            os.remove(self._path)

    def __repr__(self):
        return f"<Broadcast {self._number}>"

    def __reduce__(self):
        if not self._value:
            raise InvalidArgument(f"Broadcast {self._number} has been destroyed.")
        return ReceivedBroadcast, (self._number, self._path)


class ReceivedBroadcast:
    """A broadcast, as a task has it."""

    def __init__(self, number, path):
        self._number = number
        self._path = path

    @property
    def value(self):
        """The value, fetched at the first time."""
        global _fetches
        if self._path not in _fetched:
            _fetches += 1
            with open(self._path, "rb") as file:
                _fetched[self._path] = pickle.load(file)
        return _fetched[self._path]

    def __reduce__(self):
        return ReceivedBroadcast, (self._number, self._path)


def forget(path: str) -> None:
    """Have this worker forget a broadcast value."""
    _fetched.pop(path, None)


def fetched() -> int:
    """Return how often this worker has fetched a broadcast value."""
    return _fetches


class AccumulatorParam(Generic[T]):
    """How values of some type are added up; a base class for the learner's own."""

    def zero(self, value: T) -> T:
        """Return what a task begins with."""
        raise NotImplementedError

    def addInPlace(self, value1: T, value2: T) -> T:
        """Return the sum, which may be the first of them, changed."""
        raise NotImplementedError


class _Adding(AccumulatorParam):
    """Numbers."""

    def __init__(self, zero_value):
        self.zero_value = zero_value

    def zero(self, value):
        return self.zero_value

    def addInPlace(self, value1, value2):
        return value1 + value2


class Accumulator(Generic[T]):
    """A value that tasks can only add to, and only the notebook can read.

    A task's share is added when its result is taken, so what an attempt added that came
    to nothing does not count. A stage that runs again adds again.
    """

    def __init__(self, aid: int, value: T, accum_param: AccumulatorParam):
        self.aid = aid
        self.accum_param = accum_param
        self._value = value
        self._in_task = False

    def __reduce__(self):
        zero = self.accum_param.zero(self._value)
        return _received, (self.aid, zero, self.accum_param)

    @property
    def value(self) -> T:
        """What has been added up by now; not to be read in a task."""
        self._check("read")
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        """Set it; in the notebook only."""
        self._check("set")
        self._value = value

    def _check(self, what):
        if self._in_task:
            raise RuntimeError(
                f"the value of an accumulator cannot be {what} in a task, which knows "
                "only its own share. Read it in the notebook, after an action."
            )

    def add(self, term: T) -> None:
        """Add a term."""
        self._value = self.accum_param.addInPlace(self._value, term)

    def __iadd__(self, term):
        self.add(term)
        return self

    def __str__(self):
        return str(self._value)

    def __repr__(self):
        return f"Accumulator<id={self.aid}, value={self._value}>"


def _received(aid, zero, param):
    if aid not in _accumulators:
        made = _accumulators[aid] = Accumulator(aid, zero, param)
        made._in_task = True
    return _accumulators[aid]


def begin() -> dict[int, Accumulator]:
    """Begin a task in a worker; return the accumulators that it will have."""
    global _accumulators
    _accumulators = {}
    return _accumulators


def param_for(value: object) -> AccumulatorParam:
    """Return how numbers like `value` are added up.

    Raises: TypeError for what is no number.
    """
    for kind, zero in ((int, 0), (float, 0.0), (complex, 0j)):
        if isinstance(value, kind):
            return _Adding(zero)
    raise TypeError(
        f"an accumulator of {value!r} needs accum_param, which says how values of type "
        f"{type(value).__name__} are added up."
    )
