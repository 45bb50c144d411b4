"""A shuffle: a map task writes a piece for each partition, a reduce task reads its own.

    map 0 ──▶ file  │piece 0│piece 1│piece 2│  + index      reduce 0 reads every piece 0
    map 1 ──▶ file  │piece 0│piece 1│piece 2│  + index      reduce 1 reads every piece 1

The file is on the disk of the worker that ran the map task, and is lost with it. A
piece is a list of chunks; memory that runs short makes more and smaller ones of it.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from distlab.dataflow.memory_estimate import size_bytes
from distlab.dataflow.rdd.dependencies import Aggregator
from distlab.dataflow.rdd.partitioning import partition_numbers
from distlab.dataflow.rdd.record_batches import batches, dump, read_segments
from distlab.dataflow.rdd.spilling_aggregation import CombinerTable, Memory, not_a_pair
from distlab.dataflow.worker import commit

__all__ = ["MapOutput", "PieceLost", "read_pieces", "write_pieces"]

_MOST_RECORDS = 2**14


class MapOutput(NamedTuple):
    """The file of one map task, and the location of each piece in it.

    pieces: for each partition the (offset, size) of its chunks. records: of each piece.
    """

    path: str
    pieces: list[list[tuple[int, int]]]
    records: list[int]

    @property
    def sizes(self) -> list[int]:
        """The bytes of each piece."""
        return [sum(size for _, size in piece) for piece in self.pieces]


class PieceLost(Exception):
    """A map task's output that no longer exists."""


def write_pieces(
    path: str,
    records: Iterable,
    how: tuple[int, Callable, Aggregator | None],
    memory: Memory,
) -> MapOutput:
    """Write a map task's pairs to a file, committed as a whole.

    how: the number of partitions, the partition function, and the aggregator for values
        of one key, or None.
    """
    partitions, choose, aggregator = how
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.part"
    with open(temporary, "wb") as file:
        pieces = _Pieces(file, partitions, choose)
        if aggregator is not None and aggregator.early:
            _combined(records, aggregator, pieces, memory)
        else:
            _plain(records, pieces, memory)
    commit(temporary, path)
    return MapOutput(path, pieces.segments, pieces.records)


def _combined(records, aggregator, pieces, memory):
    def spill(table):
        before, taken = pieces.end, table.take()
        pieces.write(list(taken), list(taken.values()))
        memory.spilled(len(taken), pieces.end - before)

    table = CombinerTable(aggregator, memory, spill)
    table.add_values(records)
    pieces.write(list(table.entries), list(table.entries.values()))


def _plain(records, pieces, memory):
    keys, values, held_bytes = [], [], 0
    for batch in batches(records):
        try:
            some_keys, some_values = zip(*batch, strict=True)
        except (TypeError, ValueError):
            raise not_a_pair(next(filter(_no_pair, batch), batch[0])) from None
        keys += some_keys
        values += some_values
        held_bytes += size_bytes(batch, len(batch))
        if held_bytes > memory.most_bytes:
            before = pieces.end
            pieces.write(keys, values)
            memory.spilled(len(keys), pieces.end - before)
            keys, values, held_bytes = [], [], 0
    pieces.write(keys, values)


def _no_pair(record):
    return not isinstance(record, tuple | list) or len(record) != 2


class _Pieces:
    """The pieces of a file that is being written."""

    def __init__(self, file, partitions, choose):
        self.segments = [[] for _ in range(partitions)]
        self.records = [0] * partitions
        self.end = 0
        self._file = file
        self._choose = choose

    def write(self, keys, values):
        """Append the pairs in chunks, each chunk to the piece of its keys."""
        parts = [([], []) for _ in self.segments]
        numbers = partition_numbers(keys, len(parts), self._choose)
        for number, key, value in zip(numbers, keys, values, strict=True):
            part = parts[number]
            part[0].append(key)
            part[1].append(value)
        for number, part in enumerate(parts):
            self.records[number] += len(part[0])
            for at in range(0, len(part[0]), _MOST_RECORDS):
                stop = at + _MOST_RECORDS
                chunk = dump((part[0][at:stop], part[1][at:stop]))
                self._file.write(chunk)
                self.segments[number].append((self.end, len(chunk)))
                self.end += len(chunk)


def read_pieces(places: list[tuple[str, list]]) -> Iterator[tuple[list, list]]:
    """Yield the (keys, values) of one partition, chunk by chunk, map by map.

    Raises: PieceLost if a file is gone.
    """
    for path, segments in places:
        if segments:
            try:
                yield from read_segments(path, segments)
            except FileNotFoundError:
                raise PieceLost(path) from None
