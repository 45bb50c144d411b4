"""What arranges partitions anew, or brings those of several RDDs together."""

from collections.abc import Sequence
from functools import partial
from itertools import chain, islice, product

from distlab.dataflow.rdd.chunks import dump
from distlab.dataflow.rdd.graph import Narrow
from distlab.dataflow.rdd.partitioning import Partitioner
from distlab.dataflow.rdd.spreading import spread_start

__all__ = ["Arrangements"]

_BEST_BYTES = 2**16


class Arrangements:
    """The part of `RDD` that looks at no record."""

    def union(self, other):
        """Return the records of this one, and then of the other."""
        return self._union([other])

    def __add__(self, other):
        if not isinstance(other, Arrangements):
            return NotImplemented
        return self.union(other)

    def _union(self, others: Sequence):
        parents = [self, *others]
        for each in others:
            self._check_same_context(each)
        if self.partitioner is not None and all(
            each.partitioner == self.partitioner for each in others
        ):
            aligned = [Narrow(each, _one) for each in parents]
            made = self._joined("union", self.partitions, _chained, aligned)
            made.partitioner = self.partitioner
            return made
        narrows, first = [], 0
        for each in parents:
            narrows.append(Narrow(each, partial(_shifted, first, each.partitions)))
            first += each.partitions
        made = self._joined("union", first, _chained, narrows)
        made.batch = self.batch if len({each.batch for each in parents}) == 1 else None
        return made

    def cartesian(self, other):
        """Return every pair of a record here and a record there."""
        self._check_same_context(other)
        width = other.partitions
        parents = [
            Narrow(self, partial(_row, width)),
            Narrow(other, partial(_column, width)),
        ]
        compute = partial(_pairs, self.batch, other.batch)
        return self._joined("cartesian", self.partitions * width, compute, parents)

    def zip(self, other):
        """Return pairs of the n-th records of both, which have equally many."""
        self._check_same_context(other)
        if self.partitions != other.partitions:
            raise ValueError(
                "zip needs as many partitions on both sides, and got "
                f"{self.partitions} and {other.partitions}."
            )
        parents = [Narrow(self, _one), Narrow(other, _one)]
        return self._joined("zip", self.partitions, _zipped, parents)

    def zipWithIndex(self):
        """Return (record, its number in the whole data set)."""
        counts = self._each("zipWithIndex", _count)[:-1] if self.partitions > 1 else []
        starts = [0]
        for count in counts:
            starts.append(starts[-1] + count)
        return self._piped("zipWithIndex", partial(_numbered, starts, 1))

    def zipWithUniqueId(self):
        """Return (record, a number of its own), without counting first."""
        starts = list(range(self.partitions))
        return self._piped(
            "zipWithUniqueId", partial(_numbered, starts, self.partitions)
        )

    def repartition(self, numPartitions: int):
        """Return the same records in another number of partitions, evenly spread."""
        return self.coalesce(numPartitions, shuffle=True)

    def coalesce(self, numPartitions: int, shuffle: bool = False):
        """Return the same in fewer partitions, whole ones together unless `shuffle`."""
        if not numPartitions > 0:
            raise ValueError(f"numPartitions is positive, and got {numPartitions!r}.")
        if shuffle:
            name = "repartition"
            spread = self._piped(name, partial(_spread, numPartitions))
            how = Partitioner(numPartitions, _itself)
            made = spread._shuffled(name, how, _values_of_chunks)
            made.partitioner = None
            return made._piped(name, _flat)
        fewer = min(numPartitions, self.partitions)
        needs = partial(_group, self.partitions, fewer)
        made = self._joined("coalesce", fewer, _chained, [Narrow(self, needs)])
        made.batch = self.batch
        return made


def _one(partition):
    return (partition,)


def _shifted(first, count, partition):
    own = partition - first
    return (own,) if 0 <= own < count else ()


def _chained(partition, inputs):
    return chain.from_iterable(open_it() for each in inputs for open_it in each)


def _row(width, partition):
    return (partition // width,)


def _column(width, partition):
    return (partition % width,)


def _pairs(batch, other_batch, partition, inputs):
    """Pair batches with batches: the right side is read once for each on the left."""
    (left,), (right,) = inputs
    for some in _batched(left(), batch):
        for others in _batched(right(), other_batch):
            yield from product(some, others)


def _batched(records, batch):
    """Cut records into batches, which double while they are small if None is given."""
    size = batch or 1
    records = iter(records)
    while some := list(islice(records, size)):
        yield some
        if batch is None:
            taken = len(dump(some))
            if taken < _BEST_BYTES:
                size *= 2
            elif taken > 10 * _BEST_BYTES:
                size = max(1, size // 2)


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


def _numbered(starts, step, partition, records):
    for at, record in enumerate(records):
        yield record, starts[partition] + at * step


def _itself(key):
    return key


def _spread(partitions, partition, records):
    """Give batches of ten to all partitions in turn, from one as if by chance."""
    to = spread_start(partition, partitions)
    for some in _batched(records, 10):
        to += 1
        yield to, some


def _values_of_chunks(partition, chunks):
    return chain.from_iterable(values for _, values in chunks)


def _flat(partition, records):
    return chain.from_iterable(records)


def _group(partitions, groups, group):
    return range(group * partitions // groups, (group + 1) * partitions // groups)
