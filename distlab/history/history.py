"""`History`: the operations of several clients, as data, in a file, and drawn."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path

from distlab import show
from distlab.errors import HistoryError, InvalidArgument
from distlab.history.jepsen import from_jepsen
from distlab.history.json_lines import from_lines, to_lines
from distlab.history.pairing import read_text
from distlab.history.words import called, described
from distlab.trace import Operation
from distlab.units import readable_seconds

__all__ = ["History"]

_OUTCOMES = ("ok", "failed", "unknown")


class History:
    """Operations in the order of their starts.

    A client makes one call after another. After one whose outcome is unknown it may
    continue: that operation may take effect at any later time, or never.
    """

    def __init__(self, operations: Iterable[Operation] = (), *, places: Iterable = ()):
        """Store operations, and the place each was read from, if it was read."""
        operations, places = list(operations), list(places)
        for number, operation in enumerate(operations):
            _check(operation, number)
        places += [""] * (len(operations) - len(places))
        order = sorted(range(len(operations)), key=lambda i: _order(operations[i]))
        self.operations = [operations[i] for i in order]
        self._places = [places[i] for i in order]
        _check_clients(self.operations)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def __len__(self):
        return len(self.operations)

    def __getitem__(self, index):
        return self.operations[index]

    def __eq__(self, other):
        return isinstance(other, History) and self.operations == other.operations

    __hash__ = None

    def __repr__(self):
        if not self.operations:
            return "History: no operations."
        keys = len({_name(operation.key) for operation in self})
        counts = [
            f"{sum(o.outcome == outcome for o in self)} {word}"
            for outcome, word in zip(
                _OUTCOMES, ("answered", "refused", "of unknown outcome"), strict=True
            )
        ]
        times = [time for o in self for time in (o.start, o.end) if time is not None]
        took = f" in {readable_seconds(max(times) - min(times))}"
        if all(isinstance(time, int) for time in times):
            took = ""  # of lines without times only the order is known
        return (
            f"History: {_counted(len(self), 'operation')} by "
            f"{_counted(len(self.clients), 'client')} on {_counted(keys, 'key')}"
            f"{took}: {', '.join(counts)}."
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.operations:
            return show.history(self)._repr_mimebundle_(include, exclude)
        return {"text/plain": repr(self)}

    # Files

    @classmethod
    def read(cls, path: str | Path) -> "History":
        """Return the history in a file of JSON lines."""
        return cls._placed(from_lines(read_text(path), str(path)))

    @classmethod
    def parse(cls, text: str) -> "History":
        """Return the history that is written in `text` as JSON lines."""
        return cls._placed(from_lines(text, "the text"))

    @classmethod
    def read_jepsen(
        cls,
        path: str | Path,
        *,
        fail_observed: bool = False,
        nil_unknown: bool = False,
        independent: bool | None = None,
    ) -> "History":
        """Return the history in a file of Jepsen: its EDN, or its log.

        fail_observed: a failed cas (acquire, release) that names no error was carried
            out and found another state, as in etcd's logs among Porcupine's tests;
            without it, what failed did not happen, as in Knossos.
        nil_unknown: a read of nil may have read anything, as in Knossos; without it,
            nil is the value that was read.
        independent: whether values are tuples of `jepsen.independent`, [key value].
            None: they are if every call has a pair, each read [key nil] and each
            cas [key [old new]], and there is a read or a cas.
        """
        options = fail_observed, nil_unknown, independent
        return cls._placed(from_jepsen(read_text(path), str(path), *options))

    def write(self, path: str | Path):
        """Write the history to a file of JSON lines, which `read` restores exactly."""
        text = "".join(line + "\n" for line in to_lines(self))
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise HistoryError(f"{path} cannot be written: {error.strerror}.") from None

    @classmethod
    def _placed(cls, pairs):
        return cls([pair[0] for pair in pairs], places=[pair[1] for pair in pairs])

    # Parts and numbers

    @property
    def clients(self) -> list[int | str]:
        """Every client, in the order of their first calls."""
        return list(dict.fromkeys(operation.client for operation in self))

    def of(self, *clients: int | str) -> "History":
        """Return the operations of these clients."""
        return self._part(lambda operation: operation.client in clients)

    def between(self, start: float, end: float) -> "History":
        """Return the operations that were called at `start` or later, before `end`."""
        return self._part(lambda operation: start <= operation.start < end)

    def by_key(self) -> dict[Hashable, "History"]:
        """Return key -> the history of the operations on it."""
        keys = {}
        for operation, place in zip(self.operations, self._places, strict=True):
            try:
                keys.setdefault(operation.key, []).append((operation, place))
            except TypeError:
                raise HistoryError(
                    f"The key of {described(operation)}{self.where(operation)} is a "
                    f"{type(operation.key).__name__}, which can change. Use a string, "
                    "a number or a tuple."
                ) from None
        return {key: self._placed(pairs) for key, pairs in keys.items()}

    def share_answered(self) -> float:
        """Return the share of operations with the outcome "ok", from 0 to 1.

        A refused operation does not count. For some clients, or an interval of time:
        `history.of(0, 1).between(0.5, 1.5).share_answered()`.
        """
        if not self.operations:
            raise InvalidArgument("There is no operation, and so no share of them.")
        return sum(o.outcome == "ok" for o in self) / len(self)

    @property
    def latencies(self) -> list[float]:
        """The seconds from invocation to response of each operation that was "ok"."""
        return [o.end - o.start for o in self if o.outcome == "ok"]

    def where(self, operation: Operation) -> str:
        """Return " (line 3 of x.jsonl)" for an operation that was read, else ""."""
        for own, place in zip(self.operations, self._places, strict=True):
            if own is operation and place:
                return f" ({place})"
        return ""

    def _part(self, keep: Callable[[Operation], bool]):
        pairs = zip(self.operations, self._places, strict=True)
        return self._placed([pair for pair in pairs if keep(pair[0])])


def _order(operation):
    """Return the sort key of an operation: its start, then its end if known."""
    start, end = operation.start, operation.end
    return start, start if end is None else end


def _name(key):
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return key


def _counted(number, word):
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _check(operation, number):
    if not isinstance(operation, Operation):
        raise HistoryError(
            f"Item {number} of the history is {operation!r}, no Operation. "
            "Make it with distlab.Operation, or read a file with History.read."
        )
    if type(operation.client) not in (int, str):
        raise HistoryError(f"The client of {operation} is no number or name.")
    if operation.outcome not in _OUTCOMES:
        raise HistoryError(
            f"The outcome of {described(operation)} is {operation.outcome!r}; "
            f"it is one of {', '.join(map(repr, _OUTCOMES))}."
        )
    if (operation.end is None) != (operation.outcome == "unknown"):
        raise HistoryError(
            f"{described(operation)} has the outcome {operation.outcome!r} and the end "
            f"{operation.end!r}. It has no end exactly if its outcome is unknown."
        )
    times = [operation.start] if operation.end is None else operation[4:6]
    for time in times:
        number = isinstance(time, int | float) and not isinstance(time, bool)
        if not number or not math.isfinite(time):
            raise HistoryError(
                f"{described(operation)} has the time {time!r}; use seconds."
            )
    if times[-1] < times[0]:
        raise HistoryError(
            f"{described(operation)} ends at {operation.end}, before it starts at "
            f"{operation.start}. Take both times from one clock."
        )


def _check_clients(operations):
    """Check that each client makes one call after another."""
    last = {}
    for operation in operations:
        before = last.get(operation.client)
        open_until = None if before is None else before.end
        if open_until is not None and operation.start < open_until:
            raise HistoryError(
                f"{called(operation.client)} calls at {operation.start} "
                f"({described(operation)}), while its call at {before.start} "
                f"({described(before)}) is open until {before.end}. A client makes one "
                "call after another: calls at the same time need clients of their "
                "own."
            )
        last[operation.client] = operation
