"""The partitions that one worker keeps, in its memory and on its disk.

Kept records are bytes: their size in memory is known exactly, and a function that
changes a record in place changes a copy. When memory is full, the least recently used
partition is evicted, to disk if its level allows that, but never for another partition
of the same data set: they would evict each other in turn.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain
from typing import NamedTuple

from distlab.dataflow.rdd.record_batches import (
    chunks_of,
    load,
    read_chunks,
    write_chunks,
)

__all__ = ["Cache", "StorageLevel"]

Key = tuple[int, int]


class StorageLevel(Enum):
    """A place for kept partitions; the value of each member is its name in words.

    A partition is kept once: if it is lost with a worker, it is computed again.
    """

    NONE = ""
    MEMORY_ONLY = "memory"
    MEMORY_AND_DISK = "memory and disk"
    DISK_ONLY = "disk"


class CachedPartition(NamedTuple):
    """One kept partition. chunks: None if it is on disk only. size: in memory."""

    level: StorageLevel
    chunks: list[bytes] | None
    size: int


class Cache:
    """The kept partitions, by (number of the data set, partition).

    memory_bytes: the limit of their size in memory. home: the folder for those on disk.
    gained, lost: the partitions added and evicted since the caller last cleared these
    lists.
    """

    def __init__(self, memory_bytes: int, home: str):
        self.gained, self.lost = [], []
        self._most_bytes = memory_bytes
        self._home = home
        self._used_bytes = 0
        self._blocks = OrderedDict()  # the one used last is at the end

    def get(self, key: Key) -> Iterator | None:
        """Return the records of a partition, or None if it is not kept."""
        block = self._blocks.get(key)
        if block is None:
            return None
        self._blocks.move_to_end(key)
        if block.chunks is None:
            return read_chunks(self._path(key))
        return chain.from_iterable(map(load, block.chunks))

    def put(self, key: Key, level: StorageLevel, records: Iterable) -> Iterator:
        """Keep a partition if there is room; return its records either way."""
        chunks, size, room = [], 0, level is not StorageLevel.DISK_ONLY
        source = chunks_of(records)
        for chunk in source:
            chunks.append(chunk)
            size += len(chunk)
            room = room and self._make_room(key, size)
            if not room:
                break
        if not room:
            chunks = chain(chunks, source)
            if level is StorageLevel.MEMORY_ONLY:
                return chain.from_iterable(map(load, chunks))
            write_chunks(self._path(key), chunks)
            chunks, size = None, 0
        self._used_bytes += size
        self._blocks[key] = CachedPartition(level, chunks, size)
        self.gained.append(key)
        return self.get(key)

    def drop(self, number: int) -> None:
        """Drop every partition of a data set."""
        for key in [key for key in self._blocks if key[0] == number]:
            self._forget(key)

    def _make_room(self, key, size):
        """Evict other data sets' partitions if need be; return True if `size` fits."""
        others = [
            other
            for other, block in self._blocks.items()
            if other[0] != key[0] and block.chunks is not None
        ]
        for other in others:
            if self._used_bytes + size <= self._most_bytes:
                break
            self._evict(other)
        return self._used_bytes + size <= self._most_bytes

    def _evict(self, key):
        block = self._blocks[key]
        if block.level is StorageLevel.MEMORY_AND_DISK:
            write_chunks(self._path(key), block.chunks)
            self._used_bytes -= block.size
            self._blocks[key] = CachedPartition(block.level, None, 0)
        else:
            self._forget(key)
            self.lost.append(key)

    def _forget(self, key):
        block = self._blocks.pop(key)
        self._used_bytes -= block.size
        if block.chunks is None:
            os.remove(self._path(key))

    def _path(self, key):
        return os.path.join(self._home, f"kept-{key[0]}-{key[1]}")
