"""Memory taken by objects, estimated from a sample of them.

A few hundred objects are measured, spread evenly, and many more if one of these is much
larger than the others. If only one in many thousands is large, the estimate may be too
small.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from sys import getsizeof

import cloudpickle

__all__ = ["counted_bytes", "lists_bytes", "size_bytes"]

_PLACE_BYTES = 9  # of a reference in a list with some room to grow
_ENTRY_BYTES = 200  # of the dict and the list, beside the key and the values
_SAMPLE, _MOST = 2**8, 2**13
_ALIKE = 4  # things are, of which none is so many times as large as the mean
_ATOMS = str | bytes | bytearray | int | float | complex | bool | None
_PICKLED = 4  # times as large are objects in memory, roughly


def size_bytes(things: Iterable, count: int) -> int:
    """Return an estimate of the bytes that `count` things and their list take.

    It depends on the objects alone, not on the state of the process's memory.
    """
    some = list(islice(things, 0, None, max(1, count // _MOST)))
    return int(count * (_PLACE_BYTES + _typical_bytes(some)))


def lists_bytes(lists: Mapping[object, Sequence]) -> int:
    """Return an estimate of the bytes that a dict of lists of values takes.

    Cost: time in proportion to the number of keys, a few nanoseconds each.
    """
    count = sum(map(len, lists.values()))
    some = list(islice(lists.items(), 0, None, max(1, len(lists) // _SAMPLE)))
    each = _MOST // max(1, len(some)) or 1  # of one key's values, spread evenly
    values = chain.from_iterable(v[:: max(1, len(v) // each)] for _, v in some)
    per_key = _ENTRY_BYTES + _mean_bytes([key for key, _ in some])
    per_value = _PLACE_BYTES + _typical_bytes(list(values))
    return int(len(lists) * per_key + count * per_value)


def _typical_bytes(things: list) -> float:
    """Return the mean bytes of one thing, from fewer samples if sizes are similar."""
    some = things[:: max(1, len(things) // _SAMPLE)]
    mean = _mean_bytes(some)
    alike = max(map(getsizeof, things), default=0) < _ALIKE * mean
    return mean if alike else _mean_bytes(things)


def counted_bytes(times: Mapping[object, int]) -> int:
    """Return an estimate of the bytes of a dict of lists that repeat one value."""
    per_key = _ENTRY_BYTES * len(times) + size_bytes(times, len(times))
    return per_key + _PLACE_BYTES * sum(times.values())


def _mean_bytes(things: list) -> float:
    """Return the mean bytes of one thing; an object that recurs counts once."""
    distinct = {id(thing): thing for thing in things}.values()
    return sum(map(_bytes_of, distinct)) / max(1, len(things))


def _bytes_of(thing):
    if isinstance(thing, _ATOMS):
        return getsizeof(thing)
    if isinstance(thing, dict):
        return getsizeof(thing) + _parts_bytes(thing.items())
    if isinstance(thing, tuple | list | set | frozenset):
        return getsizeof(thing) + _parts_bytes(thing)
    return max(getsizeof(thing), _PICKLED * len(cloudpickle.dumps(thing)))


def _parts_bytes(parts: Iterable) -> float:
    some = list(islice(parts, _SAMPLE))
    return _mean_bytes(some) * len(parts)
