"""Several RDDs of pairs brought together by key.

Each value is marked with the RDD that it is from; then all are grouped together, and a
key's values are dealt out again. RDDs with the same partitioner need no shuffle.
"""

from collections.abc import Callable
from functools import partial, reduce
from itertools import product

from distlab.dataflow.rdd.pairs import ResultIterable

__all__ = ["Joins"]


class Joins:
    """The part of `RDD` that works by key with others."""

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

    def _together(self, operation, other, numPartitions, pairs: Callable):
        grouped = self._grouped(operation, [self, other], numPartitions)
        return grouped._piped(operation, partial(_dealt_pairs, pairs), True)

    def _grouped(self, operation, rdds, numPartitions):
        """Return (key, all its values as (number of the RDD, value))."""
        for each in rdds:
            self._check_same_context(each)
        marked = [
            each._piped(operation, partial(_mark, number), True, True)
            for number, each in enumerate(rdds)
        ]
        return reduce(type(self).union, marked).groupByKey(numPartitions)

    def cogroup(self, other, numPartitions: int | None = None):
        """Return (key, (values here, values there)) for every key."""
        return self._cogrouped([self, other], numPartitions)

    def groupWith(self, other, *others):
        """Return the same for any number of RDDs."""
        return self._cogrouped([self, other, *others], None)

    def _cogrouped(self, rdds, numPartitions):
        grouped = self._grouped("cogroup", rdds, numPartitions)
        return grouped._piped("cogroup", partial(_dealt, len(rdds)), True)

    def subtractByKey(self, other, numPartitions: int | None = None):
        """Return the pairs whose key the other one has not."""
        together = self.cogroup(other, numPartitions)
        return together._piped("subtractByKey", _without, True)


def _mark(number, partition, records):
    return ((key, (number, value)) for key, value in records)


def _parts(count, marked):
    parts = [[] for _ in range(count)]
    for number, value in marked:
        parts[number].append(value)
    return parts


def _dealt(count, partition, records):
    for key, marked in records:
        yield key, tuple(map(ResultIterable, _parts(count, marked)))


def _dealt_pairs(pairs, partition, records):
    for key, marked in records:
        for pair in pairs(*_parts(2, marked)):
            yield key, pair


def _inner(here, there):
    return product(here, there)


def _left(here, there):
    return product(here, there or [None])


def _right(here, there):
    return product(here or [None], there)


def _full(here, there):
    return product(here or [None], there or [None])


def _without(partition, records):
    for key, (here, there) in records:
        if not there:
            for value in here:
                yield key, value
