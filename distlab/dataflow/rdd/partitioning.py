"""Partitioning of keys: the same in every process, and on every attempt.

Workers are forks of one server, started with a fixed seed for hashes, so `hash` of a
string is the same in all of them, and in those that replace a dead one. In the
notebook's own process it is another one, so nothing is hashed there.
"""

import bisect
import reprlib
import sys
from collections.abc import Callable, Iterable

from distlab.dataflow.user_functions import unhashable

__all__ = ["Partitioner", "RangeOf", "partition_numbers", "portable_hash"]

_PLAIN = {int, str, float, bool, bytes, complex}


def portable_hash(x: object) -> int:
    """Return the hash that determines a key's partition; 0 for None."""
    if x is None:
        return 0
    if isinstance(x, tuple):
        mixed = 0x345678
        for part in x:
            mixed = ((mixed ^ portable_hash(part)) * 1000003) & sys.maxsize
        mixed ^= len(x)
        return -2 if mixed == -1 else mixed
    if type(x).__hash__ is object.__hash__:
        raise TypeError(
            f"the key {reprlib.repr(x)} is hashed by where it is in memory, and so "
            "differently on every worker. Take strings, numbers or tuples of them as "
            "keys, or give its class __hash__ and __eq__."
        )
    return hash(x)


def partition_numbers(keys: list, partitions: int, choose: Callable) -> Iterable[int]:
    """Return the partition of each key, as `choose(key) % partitions`.

    Raises: TypeError for a key that cannot be hashed, or a choice that is no number.
    """
    if choose is portable_hash:
        if not set(map(type, keys)) <= _PLAIN:
            return [_hashed(key) % partitions for key in keys]
        return [number % partitions for number in map(hash, keys)]
    return [_chosen(choose, key, partitions) for key in keys]


def _hashed(key):
    try:
        return portable_hash(key)
    except TypeError as error:
        raise unhashable(key, error) from None


def _chosen(choose, key, partitions):
    number = choose(key)
    try:
        number = number % partitions
        return number.__index__()
    except (TypeError, AttributeError):
        raise TypeError(
            f"the partition function returned {reprlib.repr(number)} for the key "
            f"{reprlib.repr(key)}; it returns a whole number."
        ) from None


class Partitioner:
    """A map from a key to one of `numPartitions`, by a function of the key.

    Two data sets with equal partitioners have equal keys in the same partition, so
    a join of them needs no shuffle.
    """

    def __init__(self, numPartitions: int, partitionFunc: Callable):
        self.numPartitions = numPartitions
        self.partitionFunc = partitionFunc

    def __eq__(self, other):
        return (
            isinstance(other, Partitioner)
            and self.numPartitions == other.numPartitions
            and self.partitionFunc == other.partitionFunc
        )

    __hash__ = None

    def __call__(self, k):
        return self.partitionFunc(k) % self.numPartitions


class RangeOf:
    """A partition function for sorting: each partition gets a range of the keys.

    bounds: the last key of each range but the last one, ascending.
    """

    def __init__(self, bounds: list, keyfunc: Callable, ascending: bool):
        self.bounds = bounds
        self.keyfunc = keyfunc
        self.ascending = ascending

    def __call__(self, key: object) -> int:
        at = bisect.bisect_left(self.bounds, self.keyfunc(key))
        return at if self.ascending else len(self.bounds) - at
