"""How much memory a table takes, estimated from some of what is in it.

A few hundred keys and a thousand values are looked at, spread evenly. Where one value
in many thousands is much larger than all others, the estimate may be too small.
"""

from collections.abc import Iterable
from itertools import chain, islice
from sys import getsizeof

import cloudpickle

__all__ = ["size_bytes"]

_ENTRY_BYTES = 200  # of the dict and the list, beside the key and the values
_SAMPLE = 256
_ATOMS = str | bytes | bytearray | int | float | complex | bool | None
_PICKLED = 4  # times as large are objects in memory, roughly


def size_bytes(table: dict) -> int:
    """Return about how many bytes the lists of values by key take, all told.

    Cost: time in proportion to the number of keys, a few nanoseconds each.
    """
    count = sum(map(len, table.values()))
    if not count:
        return 0
    step = max(1, len(table) // _SAMPLE)
    some = list(islice(table.items(), 0, None, step))
    keys = [key for key, _ in some]
    each = max(1, 4 * _SAMPLE // len(some))  # of one key's values, spread evenly
    values = chain.from_iterable(v[:: max(1, len(v) // each)] for _, v in some)
    per_key = _ENTRY_BYTES + _mean_bytes(keys)
    return int(len(table) * per_key + count * (9 + _mean_bytes(list(values))))


def _mean_bytes(things: list) -> float:
    """Return what one of the things takes; what is there several times counts once."""
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
