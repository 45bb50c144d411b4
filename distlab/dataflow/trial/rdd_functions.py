"""What the checks of RDDs give to a learner's functions."""

from collections.abc import Callable, Iterable, Iterator

from distlab.dataflow.rdd.shared import Accumulator
from distlab.dataflow.rdd.shared import ReceivedBroadcast as _Received

__all__ = [
    "FUNCTIONS",
    "Key",
    "Parse",
    "ReceivedAccumulator",
    "ReceivedBroadcast",
    "with_lookups",
]

ask: Callable | None = None  # in a twin: asks its worker
_looked = _told = 0  # in a twin: how often a Key was hashed or compared
_values = {}  # in a twin: number -> value of a broadcast


def _total(one, other):
    return one + other


def _smaller(one, other):
    return one if one <= other else other


def _longer(one, other):
    """The longer word; of two equally long ones the later in the alphabet."""
    return max(one, other, key=lambda word: (len(word), word))


def _merged(one, other):
    """The numbers of both lists in order, each once."""
    return sorted({*one, *other})


def _known(one, other):
    """The larger of two sizes; None is one that is not known, and then nothing is."""
    return None if one is None or other is None else max(one, other)


FUNCTIONS = {
    "the total": _total,
    "the smaller": _smaller,
    "the longer word": _longer,
    "both lists, merged": _merged,
    "the larger, if both are known": _known,
}


class Key:
    """A word that counts how often it is looked for."""

    def __init__(self, word: str):
        self.word = word

    def __hash__(self):
        global _looked
        _looked += 1
        return hash(self.word)

    def __eq__(self, other):
        global _looked
        _looked += 1
        return isinstance(other, Key) and self.word == other.word

    def __repr__(self):
        return repr(self.word)


def with_lookups(records: Iterable) -> Iterator:
    """Yield pairs with words for each `Key`; in the end (None, how many look-ups).

    Those that were told of once are not told of again.
    """
    global _told
    for record in records:
        if type(record) is tuple and type(record[0]) is Key:
            record = (record[0].word, *record[1:])
        yield record
    _told, new = _looked, _looked - _told
    yield None, new


class Parse:
    """Makes a point of a line, by asking the worker what is in it, who counts.

    In the driver it refuses to.
    """

    def __init__(self, table: int):
        self.table = table

    def __call__(self, line: str) -> tuple[float, ...]:
        if ask is None:
            raise RuntimeError("a line is parsed in the driver, and not on a worker")
        return ask("point", self.table, line)


class ReceivedBroadcast(_Received):
    """A broadcast, as a function has it in a twin."""

    @property
    def value(self):
        """The value, which the worker fetches at the first time."""
        if self._number not in _values:
            _values[self._number] = ask("broadcast", self._number)
        return _values[self._number]


class ReceivedAccumulator(Accumulator):
    """An accumulator, as a function has it in a twin."""

    def __init__(self, number: int):
        super().__init__(number, None, None)
        self._in_task = True

    def add(self, term: object) -> None:
        """Add a term, also one of numpy's, to the task's share; the worker has it."""
        ask("accumulator", self.aid, term.item() if hasattr(term, "item") else term)
