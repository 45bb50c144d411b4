"""Records as bytes, some at a time: what the cache, shuffles and spills are made of.

A chunk is a pickled list of records, or the columns (keys, values) of pairs, which
pickle much faster than a list of pairs.
"""

import os
import pickle
from collections.abc import Iterable, Iterator
from itertools import islice

import cloudpickle

__all__ = ["batches", "chunks_of", "dump", "load", "read_segments"]

_CHUNK_BYTES = 2**17
_MOST_RECORDS = 2**14


def dump(thing: object) -> bytes:
    """Return a chunk as bytes; instances of the learner's classes may be in it."""
    return cloudpickle.dumps(thing, protocol=5)


load = pickle.loads


def batches(records: Iterable) -> Iterator[list]:
    """Yield the records in lists that grow, so that few records wait for no others."""
    records, count = iter(records), 16
    while batch := list(islice(records, count)):
        yield batch
        count = min(2 * count, 4096)


def chunks_of(records: Iterable) -> Iterator[tuple[bytes, int]]:
    """Yield (bytes, how many records) of chunks of some 100 kB."""
    records, count = iter(records), 16
    while batch := list(islice(records, count)):
        chunk = dump(batch)
        yield chunk, len(batch)
        fitting = count * _CHUNK_BYTES // len(chunk)
        count = max(1, min(fitting, 4 * count, _MOST_RECORDS))


def read_segments(path: str, segments: Iterable[tuple[int, int]]) -> Iterator:
    """Yield what each (offset, size) of a file holds."""
    file = os.open(path, os.O_RDONLY)
    try:
        for offset, size in segments:
            yield load(os.pread(file, size, offset))
    finally:
        os.close(file)
