"""Sorted keys with their values in a file, written and read in blocks, and merged.

    file   │size│pickled: keys, how many values each has, all values│size│pickled ...
    run    a stretch of a file in which keys ascend

A reader holds one block of each run, so merging takes memory for as many blocks as
there are runs, whatever the runs hold. More runs than `FAN_IN` are merged in passes.
"""

import heapq
import os
import pickle
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import NamedTuple

import cloudpickle

from distlab.dataflow.functions import unordered

__all__ = [
    "Run",
    "in_pieces",
    "merged",
    "narrowed",
    "read",
    "short",
    "write",
]

FAN_IN = 64
_BLOCK_BYTES = 2**16
_MOST_ENTRIES = 4096
_MOST_VALUES = 256
_SIZE = struct.Struct("<Q")


class Run(NamedTuple):
    """The bytes of a file from `start` to before `end`, whole blocks."""

    path: str
    start: int
    end: int


def write(file, entries: Iterable) -> int:
    """Write entries (key, list of values) to a binary file; return how many values.

    How many entries make a block follows from the size of the block before, so the
    bytes depend on the entries alone. A block's columns are flat lists, which pickle
    much faster than a list of pairs.
    """
    entries, count, total = iter(entries), 16, 0
    while block := list(islice(entries, count)):
        keys, lists = zip(*block, strict=True)
        values = list(chain.from_iterable(lists))
        counts = list(map(len, lists))
        columns = list(keys), None if set(counts) == {1} else counts, values
        payload = cloudpickle.dumps(columns, protocol=5)
        file.write(_SIZE.pack(len(payload)))
        file.write(payload)
        total += len(values)
        fitting = count * _BLOCK_BYTES // len(payload)
        count = max(1, min(fitting, 4 * count, _MOST_ENTRIES))
    return total


def read(descriptor: int, start: int, end: int) -> Iterator[tuple[object, Sequence]]:
    """Yield the entries between two offsets of an open file."""
    while start < end:
        (size,) = _SIZE.unpack(os.pread(descriptor, _SIZE.size, start))
        start += _SIZE.size
        keys, counts, values = pickle.loads(os.pread(descriptor, size, start))
        if counts is None:
            yield from zip(keys, zip(values, strict=True), strict=True)
        else:
            rest = iter(values)
            for key, count in zip(keys, counts, strict=True):
                yield key, list(islice(rest, count))
        start += size


def in_pieces(groups: Iterable) -> Iterator[tuple[object, list]]:
    """Yield (key, values) with short lists, so that a block of them stays small."""
    for key, values in groups:
        values = iter(values)
        while piece := list(islice(values, _MOST_VALUES)):
            yield key, piece


def short(entries: Iterable) -> Iterator[tuple[object, list]]:
    """Yield (key, values) in the same way, where the values are lists already."""
    for entry in entries:
        if len(entry[1]) <= _MOST_VALUES:
            yield entry
        else:
            yield from in_pieces((entry,))


def merged(runs: list[Run]) -> Iterator[tuple[object, Iterator]]:
    """Yield each key of the runs once, ascending, with an iterator over its values.

    Values of one key come in the order of the runs. The files are open until the
    iterator ends or is closed.
    """
    opened = []
    try:
        for run in runs:
            opened.append(os.open(run.path, os.O_RDONLY))
        # The number decides between equal keys, so that values are never compared.
        numbered = [
            _numbered(number, read(descriptor, run.start, run.end))
            for number, (descriptor, run) in enumerate(zip(opened, runs, strict=True))
        ]
        for key, group in groupby(_in_order(numbered), itemgetter(0)):
            yield key, chain.from_iterable(map(itemgetter(2), group))
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _in_order(numbered):
    key = None
    try:
        for entry in heapq.merge(*numbered):
            key = entry[0]
            yield entry
    except TypeError:
        raise unordered(key, "a key of another type") from None


def _numbered(number, entries):
    for key, values in entries:
        yield key, number, values


def narrowed(
    runs: list[Run], temporary: str, combine: Callable[[object, Iterator], Iterable]
) -> list[Run]:
    """Return at most `FAN_IN` runs with the same pairs, merged into files if need be.

    temporary: path to which a number is added. combine: makes fewer of a key's values.
    """
    passes = 0
    while len(runs) > FAN_IN:
        wide, runs = runs, []
        for at in range(0, len(wide), FAN_IN):
            path = f"{temporary}.{passes}.{at}"
            with open(path, "wb") as file:
                groups = merged(wide[at : at + FAN_IN])
                fewer = ((key, combine(key, values)) for key, values in groups)
                write(file, in_pieces(fewer))
                runs.append(Run(path, 0, file.tell()))
        passes += 1
    return runs
