"""Aggregation by key, and sorting of records, in bounded memory.

pairs ─▶ key -> combiner ─ too large? ─▶ spilled: by hash of the key to 16 files
            └──── the end ────▶ items, or one file after the other, merged in turn

records ─▶ list ─ too large? ─▶ spilled: a sorted run ──▶ merge of all runs
"""

import heapq
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count, islice, starmap

from distlab.dataflow.memory_estimate import size_bytes
from distlab.dataflow.rdd.dependencies import Aggregator
from distlab.dataflow.rdd.record_batches import (
    batches,
    chunks_of,
    dump,
    read_chunks,
    read_segments,
    write_chunks,
)
from distlab.dataflow.user_functions import unhashable, unordered

__all__ = ["CombinerTable", "Memory", "not_ordered", "ordered"]

_FILES = 16
_SPILLED_ENTRIES = 1024
_END = object()


class Memory:
    """The memory limit of a task, and its spill files.

    most_bytes: limit for the data that it holds. path: prefix of spill files' names.
    spilled_records, spilled_bytes: the amounts written to spill files so far.
    """

    def __init__(self, most_bytes: int, path: str):
        self.most_bytes = most_bytes
        self.spilled_records = self.spilled_bytes = 0
        self._path = path
        self._numbers = count()

    def new_file(self) -> str:
        """Return a path that is not yet in use."""
        return f"{self._path}.{next(self._numbers)}"

    def spilled(self, records: int, size: int) -> None:
        """Add to the counts of spilled records and bytes."""
        self.spilled_records += records
        self.spilled_bytes += size


class CombinerTable:
    """A hash table of key -> combiner, for the values or combiners that are added.

    spill: called with the table when it has become too large, to remove its entries;
    without it they go to files, and are read back in `items`.
    """

    def __init__(
        self,
        aggregator: Aggregator,
        memory: Memory,
        spill: Callable | None = None,
        depth: int = 0,
    ):
        self.entries = {}
        self._aggregator = aggregator
        self._memory = memory
        self._spill_elsewhere = spill
        self._depth = depth
        self._files = None
        self._span = 1000  # pairs until the next look
        self._size = 0  # at the last one

    def add_values(self, pairs: Iterable) -> None:
        """Merge each value into its key's combiner."""
        self._add(pairs, self._aggregator.create, self._aggregator.merge)

    def add_combiners(self, columns: Iterable[tuple[list, list]]) -> None:
        """Merge each combiner into its key's; columns: (keys, combiners)."""
        self._add(_pairs(columns), None, self._aggregator.combine)

    def add_columns(self, columns: Iterable[tuple[list, list]]) -> None:
        """Merge each value into its key's combiner; columns: (keys, values)."""
        self.add_values(_pairs(columns))

    def _add(self, pairs, create, merge):
        """Add pairs from an iterator; check the table's size now and then.

        Nothing else is done for each of them: a count by key spends its time here.
        """
        pairs, create, pair = iter(pairs), create or _itself, None
        try:
            while pair is not _END:
                entries, pair = self.entries, _END
                for pair in islice(pairs, self._span):  # sets no pair at the end
                    key, value = pair
                    if key in entries:
                        entries[key] = merge(entries[key], value)
                    else:
                        entries[key] = create(value)
                self._look()
        except (TypeError, ValueError) as error:
            raise _described(error, pair) from error.__cause__

    def _look(self):
        """Estimate its size, and spill if too large; set the pairs until next time."""
        entries = self.entries
        size = size_bytes(entries.items(), len(entries))
        if size > self._memory.most_bytes:
            (self._spill_elsewhere or self._spill)(self)
            size = 0
        growth = max(1, (size - self._size) // self._span)  # by each pair
        fitting = (self._memory.most_bytes - size) // (4 * growth)
        self._size, self._span = size, max(100, min(fitting, 4 * self._span))

    def take(self) -> dict:
        """Return the entries, and continue with an empty table."""
        taken, self.entries = self.entries, {}
        return taken

    def _spill(self, _=None):
        if self._files is None:
            self._files = [_Spill(self._memory) for _ in range(_FILES)]
        for key, combiner in self.take().items():
            self._files[hash((self._depth, key)) % _FILES].add(key, combiner)

    def items(self) -> Iterator[tuple[object, object]]:
        """Return (key, combiner) pairs; in insertion order if none was spilled."""
        if self._files is None:
            return iter(self.entries.items())
        self._spill()
        return self._from_files()

    def _from_files(self):
        for spill in self._files:
            table = CombinerTable(self._aggregator, self._memory, depth=self._depth + 1)
            table.add_combiners(spill.columns())
            yield from table.items()


class _Spill:
    """The entries of one spill file, in chunks."""

    def __init__(self, memory):
        self._memory = memory
        self._path = memory.new_file()
        self._segments = []
        self._keys, self._values = [], []
        self._end = 0

    def add(self, key, value):
        self._keys.append(key)
        self._values.append(value)
        if len(self._keys) >= _SPILLED_ENTRIES:
            self._write()

    def _write(self):
        chunk = dump((self._keys, self._values))
        with open(self._path, "ab") as file:
            file.write(chunk)
        self._segments.append((self._end, len(chunk)))
        self._end += len(chunk)
        self._memory.spilled(len(self._keys), len(chunk))
        self._keys, self._values = [], []

    def columns(self):
        if self._keys:
            self._write()
        if self._segments:
            yield from read_segments(self._path, self._segments)
            os.remove(self._path)


def _pairs(columns):
    return chain.from_iterable(starmap(zip, columns))


def _itself(value):
    return value


def _described(error, pair):
    """Return the exception to report when a pair could not be added."""
    if error.__traceback__.tb_next is not None:
        return error  # raised in the learner's function
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return not_a_pair(pair)
    try:
        hash(pair[0])
    except TypeError as cause:
        return unhashable(pair[0], cause)
    return error


def not_a_pair(record: object) -> TypeError:
    """Return the exception for a record that is not a (key, value) pair."""
    return TypeError(
        f"the record {reprlib.repr(record)} is no (key, value) pair, which operations "
        "by key need. Make pairs first: keyBy(f), or map(lambda x: (x, 1))."
    )


def ordered(
    records: Iterable, key: Callable, reverse: bool, memory: Memory
) -> Iterator:
    """Yield the records in order of key(record); the sort is stable."""
    runs, held, until_look, span = [], [], 1000, 1000
    for batch in batches(records):
        held += batch
        until_look -= len(batch)
        if until_look <= 0:
            size = size_bytes(held, len(held))
            if size > memory.most_bytes:
                runs.append(_run(held, key, reverse, memory))
                size, held = 0, []
            growth = max(1, size // max(1, len(held)))
            span = min((memory.most_bytes - size) // (4 * growth), 4 * span)
            until_look = max(100, span)
    _sort(held, key, reverse)
    if not runs:
        return iter(held)
    return heapq.merge(*map(_read_run, runs), held, key=key, reverse=reverse)


def _run(held, key, reverse, memory):
    _sort(held, key, reverse)
    path = memory.new_file()
    memory.spilled(len(held), write_chunks(path, chunks_of(held)))
    return path


def _sort(held, key, reverse):
    try:
        held.sort(key=key, reverse=reverse)
    except TypeError as error:
        raise not_ordered(error, map(key, held)) from error.__cause__


def not_ordered(error: TypeError, keys: Iterable) -> TypeError:
    """Return the exception that names two keys that cannot be compared."""
    kinds = {}
    if error.__traceback__.tb_next is None:  # else the learner's own key function
        for key in keys:
            kinds[type(key)] = key
    if len(kinds) < 2:
        return error
    some, other, *_ = kinds.values()
    return unordered(some, other)


def _read_run(path):
    yield from read_chunks(path)
    os.remove(path)
