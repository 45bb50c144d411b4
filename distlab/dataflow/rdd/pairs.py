"""Operations on RDDs of (key, value) pairs: grouping, aggregation, sorting by key."""

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from distlab.dataflow.rdd import executor
from distlab.dataflow.rdd.dependencies import Aggregator
from distlab.dataflow.rdd.partitioning import Partitioner, RangeOf, portable_hash
from distlab.dataflow.rdd.spilling_aggregation import (
    CombinerTable,
    not_ordered,
    ordered,
)

__all__ = ["Pairs", "ResultIterable"]

_SAMPLES_PER_PARTITION = 20.0


class ResultIterable:
    """The values of one key, to be looped over, any number of times."""

    def __init__(self, data: list):
        self.data = data

    def __iter__(self) -> Iterator:
        return iter(self.data)

    def __len__(self):
        return len(self.data)


class Pairs:
    """The part of `RDD` that works by key."""

    def keys(self):
        """Return the key of each pair."""
        return self._piped("keys", _keys)

    def values(self):
        """Return the value of each pair."""
        return self._piped("values", _values)

    def mapValues(self, f: Callable):
        """Return (key, f(value)) of each pair; keys stay in their partition."""
        return self._piped("mapValues", partial(_map_values, f), True)

    def flatMapValues(self, f: Callable):
        """Return (key, each that f(value) yields) of each pair."""
        return self._piped("flatMapValues", partial(_flat_map_values, f), True)

    def partitionBy(
        self, numPartitions: int | None, partitionFunc: Callable = portable_hash
    ):
        """Return the pairs, each in partition partitionFunc(key) % numPartitions."""
        partitioner = self._partitioner(numPartitions, partitionFunc)
        if self.partitioner == partitioner:
            return self
        return self._shuffled("partitionBy", partitioner, _pairs)

    def _partitioner(self, partitions, choose=portable_hash):
        """Return a partitioner; by default with as many partitions as this RDD."""
        count = self.partitions if partitions is None else int(partitions)
        if partitions is not None and count < 1:
            raise ValueError(f"numPartitions is at least 1, and got {partitions!r}.")
        return Partitioner(count, choose)

    def _aggregated(self, operation, aggregator, numPartitions):
        """Return (key, combiner), after a shuffle if keys are not in place already."""
        partitioner = self._partitioner(numPartitions)
        if self.partitioner == partitioner:
            return self._piped(operation, partial(_aggregate_here, aggregator), True)
        compute = partial(_aggregate, aggregator)
        return self._shuffled(operation, partitioner, compute, aggregator)

    def combineByKey(
        self,
        createCombiner: Callable,
        mergeValue: Callable,
        mergeCombiners: Callable,
        numPartitions: int | None = None,
    ):
        """Return (key, the combiner of its values).

        createCombiner(value) and mergeValue(combiner, value) make combiners before the
        shuffle; mergeCombiners(one, other) merges them after it.
        """
        aggregator = Aggregator(createCombiner, mergeValue, mergeCombiners)
        return self._aggregated("combineByKey", aggregator, numPartitions)

    def reduceByKey(self, func: Callable, numPartitions: int | None = None):
        """Return (key, all its values combined by func(one, other)).

        Each map task first combines its own values, so it sends one record per key.
        """
        aggregator = Aggregator(None, func, func)
        return self._aggregated("reduceByKey", aggregator, numPartitions)

    def aggregateByKey(
        self,
        zeroValue: object,
        seqFunc: Callable,
        combFunc: Callable,
        numPartitions: int | None = None,
    ):
        """Return (key, its values folded by seqFunc into a copy of zeroValue)."""
        create = partial(_from_zero, seqFunc, zeroValue)
        aggregator = Aggregator(create, seqFunc, combFunc)
        return self._aggregated("aggregateByKey", aggregator, numPartitions)

    def foldByKey(
        self, zeroValue: object, func: Callable, numPartitions: int | None = None
    ):
        """Return (key, its values folded by func into a copy of zeroValue)."""
        create = partial(_from_zero, func, zeroValue)
        aggregator = Aggregator(create, func, func)
        return self._aggregated("foldByKey", aggregator, numPartitions)

    def groupByKey(self, numPartitions: int | None = None):
        """Return (key, all its values); every value is sent.

        All values of one key have to fit into a worker's memory at once, as in Spark:
        many keys go to disk when memory is short, one key's values do not. Where the
        values are to be combined, reduceByKey sends and holds far less.
        """
        aggregator = Aggregator(_listed, _appended, _extended, early=False)
        lists = self._aggregated("groupByKey", aggregator, numPartitions)
        return lists._piped("groupByKey", _as_results, True)

    def sortByKey(
        self,
        ascending: bool = True,
        numPartitions: int | None = None,
        keyfunc: Callable = lambda x: x,
    ):
        """Return the pairs in order of keyfunc(key), over all partitions.

        The keys' ranges are chosen from a sample, for which the data is read once.
        """
        partitions = self._partitioner(numPartitions).numPartitions
        compute = partial(_sort, keyfunc, not ascending)
        if partitions == 1:
            whole = self.coalesce(1) if self.partitions > 1 else self
            return whole._piped("sortByKey", compute, True)
        size = self.count()
        if not size:
            return self
        fraction = min(partitions * _SAMPLES_PER_PARTITION / size, 1.0)
        samples = self.sample(False, fraction, 1).keys().collect()
        try:
            samples.sort(key=keyfunc)
        except TypeError as error:
            raise not_ordered(error, map(keyfunc, samples)) from None
        bounds = [
            samples[len(samples) * (number + 1) // partitions]
            for number in range(partitions - 1)
        ]
        choose = RangeOf(bounds, keyfunc, ascending)
        compute = partial(_sort_chunks, compute)
        return self._shuffled("sortByKey", Partitioner(partitions, choose), compute)


def _keys(partition, records):
    return (record[0] for record in records)


def _values(partition, records):
    return (record[1] for record in records)


def _map_values(f, partition, records):
    return ((record[0], f(record[1])) for record in records)


def _flat_map_values(f, partition, records):
    return ((record[0], value) for record in records for value in f(record[1]))


def _pairs(partition, chunks):
    for keys, values in chunks:
        yield from zip(keys, values, strict=True)


def _aggregate_here(aggregator, partition, records):
    table = CombinerTable(aggregator, executor.memory())
    table.add_values(records)
    return table.items()


def _aggregate(aggregator, partition, chunks):
    table = CombinerTable(aggregator, executor.memory())
    (table.add_combiners if aggregator.early else table.add_columns)(chunks)
    return table.items()


def _from_zero(func, zero, value):
    return func(copy.deepcopy(zero), value)


def _listed(value):
    return [value]


def _appended(values, value):
    values.append(value)
    return values


def _extended(values, others):
    values.extend(others)
    return values


def _as_results(partition, records):
    return ((key, ResultIterable(values)) for key, values in records)


def _sort(keyfunc, reverse, partition, records: Iterable):
    def key(pair):
        return keyfunc(pair[0])

    return ordered(records, key, reverse, executor.memory())


def _sort_chunks(compute, partition, chunks):
    return compute(partition, _pairs(partition, chunks))
