"""Chunks: serialized batches of records, used by the cache, shuffles and spills.

A chunk is a pickled list of records, or the columns (keys, values) of pairs, which
pickle much faster than a list of pairs.
"""

import os
import pickle
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import cloudpickle

__all__ = [
    "batches",
    "chunks_of",
    "dump",
    "load",
    "read_chunks",
    "read_segments",
    "write_chunks",
]

_CHUNK_BYTES = 2**17
_SIZE_BYTES = 8
_MOST_RECORDS = 2**14


def dump(thing: object) -> bytes:
    """Return a chunk as bytes; instances of the learner's classes may be in it."""
    return cloudpickle.dumps(thing, protocol=5)


load = pickle.loads


def batches(records: Iterable) -> Iterator[list]:
    """Yield the records in lists of growing size, from 16 to 4096."""
    records, count = iter(records), 16
    while batch := list(islice(records, count)):
        yield batch
        count = min(2 * count, 4096)


def chunks_of(records: Iterable) -> Iterator[bytes]:
    """Yield the records in chunks of some 100 kB."""
    records, count = iter(records), 16
    while batch := list(islice(records, count)):
        chunk = dump(batch)
        yield chunk
        fitting = count * _CHUNK_BYTES // len(chunk)
        count = max(1, min(fitting, 4 * count, _MOST_RECORDS))


def write_chunks(path: str, chunks: Iterable[bytes]) -> int:
    """Write chunks to a file, each after its size; return the bytes of all."""
    with open(path, "wb") as file:
        for chunk in chunks:
            file.write(len(chunk).to_bytes(_SIZE_BYTES, "little"))
            file.write(chunk)
        return file.tell()


def read_chunks(path: str) -> Iterator:
    """Return an iterator over the records of such a file."""
    return chain.from_iterable(map(load, _chunks(path)))


def _chunks(path):
    with open(path, "rb") as file:
        while size := file.read(_SIZE_BYTES):
            yield file.read(int.from_bytes(size, "little"))


def read_segments(path: str, segments: Iterable[tuple[int, int]]) -> Iterator:
    """Yield the deserialized chunk at each (offset, size) of a file."""
    file = os.open(path, os.O_RDONLY)
    try:
        for offset, size in segments:
            yield load(os.pread(file, size, offset))
    finally:
        os.close(file)
