"""Sorted keys with their values in a file, written and read in blocks, and merged.

    file   │size│pickled: keys, how many values each has, all values│size│pickled ...
    run    a stretch of a file in which keys ascend

A reader holds one block of each run, so merging takes memory for as many blocks as
there are runs, whatever the runs hold. If memory limits the runs, passes merge them.
"""

import os
import pickle
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import NamedTuple

import cloudpickle

from distlab.dataflow.user_functions import unordered

__all__ = ["Run", "fan_in", "merged", "narrowed", "read", "write"]

_BLOCK_BYTES = 2**16
_FIRST_VALUES, _MOST_VALUES = 1, 2048
_LEAST_RUNS, _MOST_RUNS = 4, 64
_READER_BYTES = 2**20  # upper bound of a block's size as objects in memory
_SIZE = struct.Struct("<Q")
_key, _values = itemgetter(0), itemgetter(1)


class Run(NamedTuple):
    """The bytes of a file from `start` to before `end`, whole blocks."""

    path: str
    start: int
    end: int


def fan_in(memory_bytes: int) -> int:
    """Return the number of runs that may be merged at once."""
    return max(_LEAST_RUNS, min(_MOST_RUNS, memory_bytes // _READER_BYTES))


def write(file, entries: Iterable) -> int:
    """Write entries (key, values) to a binary file; return the number of values.

    The number of values in a block follows from the size of the block before, so the
    bytes depend on the entries alone. A key with more values than that is split over
    several entries. A block's columns are flat lists, which pickle much faster than a
    list of pairs.
    """
    keys, counts, values = [], [], []
    room, total = _FIRST_VALUES, 0
    for key, more in entries:
        if more.__class__ is list and 0 < len(more) < room - len(values):
            keys.append(key)
            counts.append(len(more))
            values += more
            continue
        more = iter(more)
        while piece := list(islice(more, room - len(values))):
            keys.append(key)
            counts.append(len(piece))
            values += piece
            if len(values) == room:
                total += room
                room = _write_block(file, keys, counts, values)
                keys, counts, values = [], [], []
    if values:
        _write_block(file, keys, counts, values)
    return total + len(values)


def _write_block(file, keys, counts, values):
    """Write one block; return the number of values that the next one may have."""
    if len(counts) == len(values):
        counts = None  # one each
    payload = cloudpickle.dumps((keys, counts, values), protocol=5)
    file.write(_SIZE.pack(len(payload)))
    file.write(payload)
    fitting = len(values) * _BLOCK_BYTES // len(payload)
    return max(1, min(fitting, 4 * len(values), _MOST_VALUES))


def read(descriptor: int, start: int, end: int) -> Iterator[tuple[object, Sequence]]:
    """Yield the entries between two offsets of an open file."""
    return chain.from_iterable(_blocks(descriptor, start, end))


def _blocks(descriptor, start, end):
    """Yield the entries of each block, as a list."""
    while start < end:
        (size,) = _SIZE.unpack(os.pread(descriptor, _SIZE.size, start))
        start += _SIZE.size
        keys, counts, values = pickle.loads(os.pread(descriptor, size, start))
        start += size
        if counts is None:
            yield list(zip(keys, zip(values, strict=True), strict=True))
        else:
            rest = iter(values)
            lists = [list(islice(rest, count)) for count in counts]
            yield list(zip(keys, lists, strict=True))


def merged(runs: list[Run]) -> Iterator[tuple[object, Iterator]]:
    """Yield each key of the runs once, ascending, with an iterator over its values.

    Values of one key come in the order of the runs. The files are open until the
    iterator ends or is closed.
    """
    opened = []
    try:
        for run in runs:
            opened.append(os.open(run.path, os.O_RDONLY))
        heads = [
            head
            for descriptor, run in zip(opened, runs, strict=True)
            if (head := _Head(_blocks(descriptor, run.start, run.end))).entries
        ]
        for key, group in groupby(_in_order(heads), _key):
            yield key, chain.from_iterable(map(_values, group))
    finally:
        for descriptor in opened:
            os.close(descriptor)


class _Head:
    """The head of a run: the entries that were read and are not yet merged."""

    def __init__(self, blocks):
        self._blocks = blocks
        self.entries = next(blocks, [])

    def below(self, limit, by):
        """Remove and return the entries before the limit."""
        at = bisect_left(self.entries, limit, key=by)
        taken = self.entries[:at]
        del self.entries[:at]
        return taken

    def at(self, limit, by):
        """Remove and yield the entries at the limit, from further blocks too."""
        while self.entries:
            at = bisect_right(self.entries, limit, key=by)
            yield from self.entries[:at]
            del self.entries[:at]
            if self.entries:
                return
            self.entries = next(self._blocks, [])


def _in_order(heads):
    """Yield all entries, ascending.

    No unread entry is below the smallest of the last keys held, so all entries below
    that key are sorted at once.
    """
    first = [head.entries[0][0] for head in heads]
    # None is equal to itself, but only a tuple with it can be compared.
    by = itemgetter(slice(1)) if any(key is None for key in first) else _key
    try:
        while heads:
            limit = min(by(head.entries[-1]) for head in heads)
            ready = [entry for head in heads for entry in head.below(limit, by)]
            ready.sort(key=by)
            yield from ready
            for head in heads:
                yield from head.at(limit, by)
            heads = [head for head in heads if head.entries]
    except TypeError:
        raise unordered(*{type(key): key for key in first}.values()) from None


def narrowed(
    runs: list[Run],
    most: int,
    temporary: str,
    combined: Callable[[Iterable], Iterable],
) -> list[Run]:
    """Return at most `most` runs with the same pairs, merged into files if need be.

    temporary: path to which numbers are added. combined: applies the combiner to
    (key, values) entries.
    """
    passes = 0
    while len(runs) > most:
        wide, runs = runs, []
        for at in range(0, len(wide), most):
            path = f"{temporary}.{passes}.{at}"
            with open(path, "wb") as file:
                write(file, combined(merged(wide[at : at + most])))
                runs.append(Run(path, 0, file.tell()))
        passes += 1
    return runs
