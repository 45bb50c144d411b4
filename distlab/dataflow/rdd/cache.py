"""The partitions that one worker keeps, in its memory and on its disk.

Kept records are bytes: how much memory they take is known exactly, and a function that
changes a record in place changes a copy. When memory is full, what was used longest ago
goes first, to disk if its level says so, but never for another partition of the same
data set: they would push each other out in turn.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from distlab.dataflow.rdd.chunks import chunks_of, load
from distlab.dataflow.rdd.levels import StorageLevel

__all__ = ["Cache"]

Key = tuple[int, int]


class Block(NamedTuple):
    """One kept partition. chunks: None if it is on disk only. sizes: of its chunks."""

    level: StorageLevel
    chunks: list[bytes] | None
    sizes: list[int]


class Cache:
    """The kept partitions, by (number of the data set, partition).

    gained, lost: what came in and went out since somebody last looked, and cleared
    them. memory_bytes: what they may take in memory.
    """

    def __init__(self, memory_bytes: int):
        self.gained, self.lost = [], []
        self._most_bytes = memory_bytes
        self._used_bytes = 0
        self._blocks = OrderedDict()  # the one used last is at the end

    def get(self, key: Key) -> Iterator | None:
        """Return the records of a partition, or None if it is not kept."""
        block = self._blocks.get(key)
        if block is None:
            return None
        self._blocks.move_to_end(key)
        return chain.from_iterable(map(load, self._chunks(key, block)))

    def put(
        self, key: Key, level: StorageLevel, records: Iterable, home: str
    ) -> Iterator:
        """Keep a partition if there is room; return its records either way."""
        chunks, room = [], level.useMemory
        source = chunks_of(records)
        for chunk, _ in source:
            chunks.append(chunk)
            room = room and self._make_room(key, sum(map(len, chunks)))
            if not room:
                break
        if room:
            return self._keep(key, Block(level, chunks, list(map(len, chunks))))
        rest = chain(chunks, (chunk for chunk, _ in source))
        if level.useDisk:
            sizes = _write(self._path(key, home), rest)
            return self._keep(key, Block(level, None, sizes), home)
        return chain.from_iterable(map(load, rest))

    def drop(self, number: int) -> None:
        """Forget every partition of a data set."""
        for key in [key for key in self._blocks if key[0] == number]:
            self._forget(key)

    def _keep(self, key, block, home=None):
        if block.chunks is not None:
            self._used_bytes += sum(block.sizes)
        self._blocks[key] = block
        self.gained.append(key)
        return self.get(key)

    def _make_room(self, key, size):
        """Return whether `size` bytes fit, after what others have to give up."""
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
        if block.level.useDisk:
            _write(self._path(key), block.chunks)
            self._used_bytes -= sum(block.sizes)
            self._blocks[key] = block._replace(chunks=None)
        else:
            self._forget(key)
            self.lost.append(key)

    def _forget(self, key):
        block = self._blocks.pop(key)
        if block.chunks is None:
            os.remove(self._path(key))
        else:
            self._used_bytes -= sum(block.sizes)

    def _chunks(self, key, block):
        if block.chunks is not None:
            return block.chunks
        return _read(self._path(key), block.sizes)

    def _path(self, key, home=None):
        self._home = home or self._home
        return os.path.join(self._home, f"kept-{key[0]}-{key[1]}")


def _write(path, chunks):
    """Write chunks to a file; return their sizes."""
    sizes = []
    with open(path, "wb") as file:
        for chunk in chunks:
            sizes.append(file.write(chunk))
    return sizes


def _read(path, sizes):
    with open(path, "rb") as file:
        for size in sizes:
            yield file.read(size)
