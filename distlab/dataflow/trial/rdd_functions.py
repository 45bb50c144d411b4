"""What the checks of RDDs give to a learner's functions, and call on workers."""

import os
from collections.abc import Iterable, Iterator

__all__ = ["FUNCTIONS", "Key", "Parse", "with_lookups"]

_looked = 0  # in a worker: how often a Key was hashed or compared
_files = {}  # path -> its descriptor, open as long as the process


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
    """Yield pairs with words for each `Key`; in the end (None, how many look-ups)."""
    before = _looked
    for record in records:
        if type(record) is tuple and type(record[0]) is Key:
            record = (record[0].word, *record[1:])
        yield record
    yield None, _looked - before


class Parse:
    """Makes a point of a line, "1.5 2 0.25", and counts the lines in a file of its own.

    In the notebook's process it refuses to.
    """

    def __init__(self, path: str):
        self.path = path
        self.driver = os.getpid()

    def __call__(self, line: str) -> tuple[float, ...]:
        if os.getpid() == self.driver:
            raise RuntimeError("a line is parsed in the driver, and not on a worker")
        if self.path not in _files:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            _files[self.path] = os.open(self.path, flags)
        os.write(_files[self.path], b".")
        return tuple(map(float, line.split()))
