"""Transformations: operations that make an RDD from one or two, without keys."""

import random
import reprlib
from collections.abc import Callable
from functools import partial
from itertools import chain, count, product

from distlab.dataflow.rdd.dependencies import Narrow, same
from distlab.dataflow.rdd.partitioning import Partitioner, portable_hash
from distlab.dataflow.rdd.record_batches import batches
from distlab.errors import InvalidArgument

__all__ = ["Transformations"]


class Transformations:
    """The part of `RDD` that needs no keys."""

    def map(self, f: Callable, preservesPartitioning: bool = False):
        """Return f(record) of each record."""
        compute = partial(_map, called(f, "map"))
        return self._piped("map", compute, preservesPartitioning)

    def flatMap(self, f: Callable, preservesPartitioning: bool = False):
        """Return all that f(record) yields, of each record."""
        compute = partial(_flat_map, called(f, "flatMap"))
        return self._piped("flatMap", compute, preservesPartitioning)

    def filter(self, f: Callable):
        """Return the records for which f(record) is true."""
        return self._piped("filter", partial(_filter, called(f, "filter")), True)

    def mapPartitions(self, f: Callable, preservesPartitioning: bool = False):
        """Return all that f(iterator over a partition) yields, of each partition."""
        compute = partial(_map_partition, called(f, "mapPartitions"))
        return self._piped("mapPartitions", compute, preservesPartitioning)

    def mapPartitionsWithIndex(self, f: Callable, preservesPartitioning: bool = False):
        """Return all that f(partition's number, iterator) yields."""
        compute = called(f, "mapPartitionsWithIndex")
        return self._piped("mapPartitionsWithIndex", compute, preservesPartitioning)

    def glom(self):
        """Return each partition as one record, a list."""
        return self._piped("glom", _glom)

    def keyBy(self, f: Callable):
        """Return (f(record), record) of each record."""
        return self._piped("keyBy", partial(_key_by, called(f, "keyBy")))

    def groupBy(self, f: Callable, numPartitions: int | None = None):
        """Return (key, records) for each value of f(record)."""
        return self.keyBy(f).groupByKey(numPartitions)

    def distinct(self, numPartitions: int | None = None):
        """Return each record once."""
        pairs = self._piped("distinct", _with_none)
        return pairs.reduceByKey(_first, numPartitions).keys()

    def intersection(self, other):
        """Return each record that is in both, once."""
        mine, theirs = self._as_keys("intersection", other)
        return mine.cogroup(theirs).filter(_in_both).keys()

    def subtract(self, other, numPartitions: int | None = None):
        """Return the records that are not in the other RDD."""
        mine, theirs = self._as_keys("subtract", other)
        return mine.subtractByKey(theirs, numPartitions).keys()

    def _as_keys(self, operation, other):
        self._check_same_context(other)
        return [rdd._piped(operation, _with_none) for rdd in (self, other)]

    def sample(self, withReplacement: bool, fraction: float, seed: int | None = None):
        """Return about that fraction of the records, chosen at random.

        Every partition has its own generator, so the same seed gives the same sample.
        """
        if not fraction >= 0:
            raise ValueError(f"fraction is not negative, and got {fraction!r}.")
        seed = random.getrandbits(64) if seed is None else seed
        choose = _several if withReplacement else _some
        return self._piped("sample", partial(choose, fraction, seed), True)

    def sortBy(
        self,
        keyfunc: Callable,
        ascending: bool = True,
        numPartitions: int | None = None,
    ):
        """Return the records in order of keyfunc(record)."""
        return self.keyBy(keyfunc).sortByKey(ascending, numPartitions).values()

    def union(self, other):
        """Return the records of this one, and then of the other."""
        return self._union([other])

    def __add__(self, other):
        if not isinstance(other, Transformations):
            return NotImplemented
        return self.union(other)

    def _union(self, others: list):
        parents = [self, *others]
        for each in others:
            self._check_same_context(each)
        if self.partitioner is not None and all(
            each.partitioner == self.partitioner for each in others
        ):
            aligned = [Narrow(each, same) for each in parents]
            made = self._joined("union", self.partitions, _chained, aligned)
            made.partitioner = self.partitioner
            return made
        narrows, first = [], 0
        for each in parents:
            narrows.append(Narrow(each, partial(_shifted, first, each.partitions)))
            first += each.partitions
        return self._joined("union", first, _chained, narrows)

    def cartesian(self, other):
        """Return every pair of a record here and a record there."""
        self._check_same_context(other)
        width = other.partitions
        parents = [
            Narrow(self, partial(_row, width)),
            Narrow(other, partial(_column, width)),
        ]
        return self._joined("cartesian", self.partitions * width, _pairs, parents)

    def zip(self, other):
        """Return pairs of the n-th records of both; their lengths must be equal."""
        self._check_same_context(other)
        if self.partitions != other.partitions:
            raise ValueError(
                "zip needs as many partitions on both sides, and got "
                f"{self.partitions} and {other.partitions}."
            )
        parents = [Narrow(self, same), Narrow(other, same)]
        return self._joined("zip", self.partitions, _zipped, parents)

    def zipWithIndex(self):
        """Return (record, its number in the whole data set)."""
        counts = self._each("zipWithIndex", _count) if self.partitions > 1 else []
        starts = [sum(counts[:number]) for number in range(self.partitions)]
        return self._piped("zipWithIndex", partial(_numbered, starts))

    def repartition(self, numPartitions: int):
        """Return the same records in another number of partitions, evenly spread."""
        return self.coalesce(numPartitions, shuffle=True)

    def coalesce(self, numPartitions: int, shuffle: bool = False):
        """Return the records in fewer partitions, merged whole unless `shuffle`."""
        if not numPartitions > 0:
            raise ValueError(f"numPartitions is positive, and got {numPartitions!r}.")
        if shuffle:
            spread = self._piped("repartition", _spread)
            how = Partitioner(numPartitions, portable_hash)
            made = spread._shuffled("repartition", how, _values_of_chunks)
            made.partitioner = None
            return made
        fewer = min(numPartitions, self.partitions)
        needs = partial(_group, self.partitions, fewer)
        return self._joined("coalesce", fewer, _chained, [Narrow(self, needs)])


def called(f: object, operation: str) -> Callable:
    """Return `f` if it is callable.

    Raises: InvalidArgument otherwise.
    """
    if not callable(f):
        raise InvalidArgument(
            f"{operation} takes a function, and got {reprlib.repr(f)}. If you wrote "
            f"{operation}(f(x)), drop the parentheses: {operation}(f)."
        )
    return f


# Generators, as a StopIteration of the learner's would silently be the end for `map`.


def _map(f, partition, records):
    return (f(record) for record in records)


def _flat_map(f, partition, records):
    return chain.from_iterable(f(record) for record in records)


def _filter(f, partition, records):
    return (record for record in records if f(record))


def _map_partition(f, partition, records):
    return f(records)


def _glom(partition, records):
    yield list(records)


def _key_by(f, partition, records):
    return ((f(record), record) for record in records)


def _with_none(partition, records):
    return ((record, None) for record in records)


def _first(a, b):
    return a


def _in_both(pair):
    return all(pair[1])


def _some(fraction, seed, partition, records):
    draw = random.Random(f"{seed} {partition}").random
    return (record for record in records if draw() < fraction)


def _several(mean, seed, partition, records):
    """Yield each record a Poisson-distributed number of times, `mean` on average."""
    chance = random.Random(f"{seed} {partition}")
    for record in records:
        passed = chance.expovariate(1) if mean else 1
        while passed < mean:
            yield record
            passed += chance.expovariate(1)


def _shifted(first, count, partition):
    own = partition - first
    return (own,) if 0 <= own < count else ()


def _chained(partition, inputs):
    return chain.from_iterable(open_it() for each in inputs for open_it in each)


def _row(width, partition):
    return (partition // width,)


def _column(width, partition):
    return (partition % width,)


def _pairs(partition, inputs):
    """Yield all pairs; the right side is read once for each batch of the left."""
    (left,), (right,) = inputs
    for some in batches(left()):
        for others in batches(right()):
            yield from product(some, others)


def _zipped(partition, inputs):
    (left,), (right,) = inputs
    try:
        yield from zip(left(), right(), strict=True)
    except ValueError as error:
        if error.__traceback__.tb_next is not None:
            raise
        raise ValueError(
            f"zip needs equally many records in both, and partition {partition} has "
            "more on one side."
        ) from None


def _count(records):
    return sum(1 for _ in records)


def _numbered(starts, partition, records):
    return zip(records, count(starts[partition]))


def _spread(partition, records):
    """Return (number, record) pairs; numbers count up from the partition's own."""
    return enumerate(records, partition)


def _values_of_chunks(partition, chunks):
    return chain.from_iterable(values for _, values in chunks)


def _group(partitions, groups, group):
    return range(group * partitions // groups, (group + 1) * partitions // groups)
