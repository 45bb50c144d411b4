"""Broadcasts and accumulators: values sent to all tasks, and sums collected of them."""

import pickle
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Accumulator", "Broadcast", "begin", "fetched", "forget"]

T = TypeVar("T")

_fetched = {}  # in a worker: path -> value, once for all its tasks
_fetches = 0
_accumulators = {}  # in a worker: number -> the accumulator of this task


class Broadcast(Generic[T]):
    """A value that every worker fetches once, when one of its tasks first uses it.

    value: the value, in the notebook and in tasks.
    """

    def __init__(self, value: T, path: str, forget: Callable):
        self.value = value
        self._path = path
        self._forget = forget

    def unpersist(self, blocking: bool = False) -> None:
        """Drop it on all workers; a task that uses it fetches it again."""
        self._forget(self._path)

    def __reduce__(self):
        return ReceivedBroadcast, (self._path,)


class ReceivedBroadcast:
    """A broadcast, as a task has it."""

    def __init__(self, path):
        self._path = path

    @property
    def value(self):
        """The value, fetched on first use."""
        global _fetches
        if self._path not in _fetched:
            _fetches += 1
            with open(self._path, "rb") as file:
                _fetched[self._path] = pickle.load(file)
        return _fetched[self._path]


def forget(path: str) -> None:
    """Drop a broadcast value in this worker."""
    _fetched.pop(path, None)


def fetched() -> int:
    """Return the number of broadcast values that this worker has fetched."""
    return _fetches


class Accumulator(Generic[T]):
    """A number that tasks can only add to, and only the notebook can read.

    A task's sum is added when its result arrives, so the sum of a failed attempt does
    not count. A stage that runs again adds again.
    """

    def __init__(self, number: int, value: T):
        self.number = number
        self._value = value
        self._in_task = False

    def __reduce__(self):
        return _received, (self.number, type(self._value)())

    @property
    def value(self) -> T:
        """The sum so far; a task cannot read it."""
        if self._in_task:
            raise RuntimeError(
                "the value of an accumulator cannot be read in a task, which sees "
                "only its own additions. Read it in the notebook, after an action."
            )
        return self._value

    def add(self, term: T) -> None:
        """Add a term."""
        self._value += term

    def __iadd__(self, term):
        self.add(term)
        return self

    def __repr__(self):
        return f"Accumulator<id={self.number}, value={self._value}>"


def _received(number, zero):
    if number not in _accumulators:
        made = _accumulators[number] = Accumulator(number, zero)
        made._in_task = True
    return _accumulators[number]


def begin() -> dict[int, Accumulator]:
    """Begin a task in a worker; return the accumulators that it will have."""
    global _accumulators
    _accumulators = {}
    return _accumulators
