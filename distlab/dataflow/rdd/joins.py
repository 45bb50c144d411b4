"""Joins: two RDDs of pairs combined by key.

Each value is tagged with the side that it is from; then both RDDs are grouped by key,
and a key's values are separated again. RDDs with the same partitioner need no shuffle.
"""

from collections.abc import Callable
from functools import partial
from itertools import product

from distlab.dataflow.rdd.pairs import ResultIterable

__all__ = ["Joins"]


class Joins:
    """The part of `RDD` that works by key with another one."""

    def join(self, other, numPartitions: int | None = None):
        """Return (key, (value here, value there)) for keys in both."""
        return self._together("join", other, numPartitions, _inner)

    def leftOuterJoin(self, other, numPartitions: int | None = None):
        """Return the same for every key here; None where there is none there."""
        return self._together("leftOuterJoin", other, numPartitions, _left)

    def rightOuterJoin(self, other, numPartitions: int | None = None):
        """Return the same for every key there; None where there is none here."""
        return self._together("rightOuterJoin", other, numPartitions, _right)

    def fullOuterJoin(self, other, numPartitions: int | None = None):
        """Return the same for every key; None where there is none."""
        return self._together("fullOuterJoin", other, numPartitions, _full)

    def cogroup(self, other, numPartitions: int | None = None):
        """Return (key, (values here, values there)) for every key."""
        return self._together("cogroup", other, numPartitions, _both)

    def subtractByKey(self, other, numPartitions: int | None = None):
        """Return the pairs whose key is not in the other RDD."""
        return self._together("subtractByKey", other, numPartitions, _without)

    def _together(self, operation, other, numPartitions, values: Callable):
        """Return (key, each of values(those here, those there)) for every key."""
        self._check_same_context(other)
        mine, theirs = (
            each._piped(operation, partial(_mark, side), True)
            for side, each in enumerate([self, other])
        )
        grouped = mine.union(theirs).groupByKey(numPartitions)
        return grouped._piped(operation, partial(_dealt, values), True)


def _mark(side, partition, records):
    return ((key, (side, value)) for key, value in records)


def _dealt(values, partition, records):
    for key, marked in records:
        sides = [], []
        for side, value in marked:
            sides[side].append(value)
        for each in values(*sides):
            yield key, each


def _inner(here, there):
    return product(here, there)


def _left(here, there):
    return product(here, there or [None])


def _right(here, there):
    return product(here or [None], there)


def _full(here, there):
    return product(here or [None], there or [None])


def _both(here, there):
    yield ResultIterable(here), ResultIterable(there)


def _without(here, there):
    return () if there else here
