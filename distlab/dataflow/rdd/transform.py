"""What makes another RDD of one, record by record or partition by partition."""

import shlex
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, product

from distlab.dataflow.rdd import sampling
from distlab.dataflow.rdd.chunks import dump
from distlab.dataflow.rdd.graph import Narrow
from distlab.dataflow.rdd.partitioning import Partitioner, portable_hash
from distlab.dataflow.rdd.spreading import spread_start

__all__ = ["Transformations"]

_BEST_BYTES = 2**16


class Transformations:
    """The part of `RDD` that needs no keys."""

    def map(self, f: Callable, preservesPartitioning: bool = False):
        """Return f(record) of each record."""
        return self._piped("map", partial(_map, f), preservesPartitioning, True)

    def flatMap(self, f: Callable, preservesPartitioning: bool = False):
        """Return all that f(record) yields, of each record."""
        return self._piped(
            "flatMap", partial(_flat_map, f), preservesPartitioning, True
        )

    def filter(self, f: Callable):
        """Return the records for which f(record) is true."""
        return self._piped("filter", partial(_filter, f), True, True)

    def mapPartitions(self, f: Callable, preservesPartitioning: bool = False):
        """Return all that f(iterator over a partition) yields, of each partition."""
        compute = partial(_map_partition, f)
        return self._piped("mapPartitions", compute, preservesPartitioning)

    def mapPartitionsWithIndex(self, f: Callable, preservesPartitioning: bool = False):
        """Return all that f(partition's number, iterator) yields."""
        compute = partial(_map_indexed, f)
        return self._piped("mapPartitionsWithIndex", compute, preservesPartitioning)

    def mapPartitionsWithSplit(self, f: Callable, preservesPartitioning: bool = False):
        """Be the old name of mapPartitionsWithIndex."""
        warnings.warn(
            "mapPartitionsWithSplit is the old name of mapPartitionsWithIndex.",
            FutureWarning,
            stacklevel=2,
        )
        return self.mapPartitionsWithIndex(f, preservesPartitioning)

    def glom(self):
        """Return each partition as one record, a list."""
        return self._piped("glom", _glom)

    def keyBy(self, f: Callable):
        """Return (f(record), record) of each record."""
        return self._piped("keyBy", partial(_key_by, f), False, True)

    def groupBy(
        self,
        f: Callable,
        numPartitions: int | None = None,
        partitionFunc: Callable = portable_hash,
    ):
        """Return (key, records) for each value of f(record)."""
        return self.keyBy(f).groupByKey(numPartitions, partitionFunc)

    def distinct(self, numPartitions: int | None = None):
        """Return each record once."""
        pairs = self._piped("distinct", _with_none, False, True)
        return pairs.reduceByKey(_first, numPartitions).keys()

    def union(self, other):
        """Return the records of this one, and then of the other."""
        return self._union([other])

    def __add__(self, other):
        if not isinstance(other, Transformations):
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

    def intersection(self, other):
        """Return each record that is in both, once."""
        self._check_same_context(other)
        mine = self._piped("intersection", _with_none, False, True)
        theirs = other._piped("intersection", _with_none, False, True)
        return mine.cogroup(theirs).filter(_in_all).keys()

    def subtract(self, other, numPartitions: int | None = None):
        """Return the records that the other one has not."""
        self._check_same_context(other)
        mine = self._piped("subtract", _with_none, False, True)
        theirs = other._piped("subtract", _with_none, False, True)
        return mine.subtractByKey(theirs, numPartitions).keys()

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

    def sample(self, withReplacement: bool, fraction: float, seed: int | None = None):
        """Return about that fraction of the records, chosen by chance."""
        if not fraction >= 0:
            raise ValueError(f"fraction is not negative, and got {fraction!r}.")
        compute = sampling.sampler(withReplacement, fraction, seed)
        return self._piped("sample", compute, True)

    def randomSplit(self, weights: Sequence[float], seed: int | None = None) -> list:
        """Return RDDs that share out the records by chance, in these proportions."""
        ranges, seed = sampling.ranges(weights, seed)
        return [
            self._piped("randomSplit", partial(sampling.between, low, high, seed), True)
            for low, high in ranges
        ]

    def sortBy(
        self,
        keyfunc: Callable,
        ascending: bool = True,
        numPartitions: int | None = None,
    ):
        """Return the records in order of keyfunc(record)."""
        return self.keyBy(keyfunc).sortByKey(ascending, numPartitions).values()

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

    def pipe(self, command: str, env: dict | None = None, checkCode: bool = False):
        """Return the lines that a program prints, given each record as a line."""
        return self._piped("pipe", partial(_pipe, command, env, checkCode))


def _map(f, partition, records):
    return map(f, records)


def _flat_map(f, partition, records):
    return chain.from_iterable(map(f, records))


def _filter(f, partition, records):
    return filter(f, records)


def _map_partition(f, partition, records):
    return f(records)


def _map_indexed(f, partition, records):
    return f(partition, records)


def _glom(partition, records):
    yield list(records)


def _key_by(f, partition, records):
    return ((f(record), record) for record in records)


def _with_none(partition, records):
    return ((record, None) for record in records)


def _first(a, b):
    return a


def _one(partition):
    return (partition,)


def _shifted(first, count, partition):
    own = partition - first
    return (own,) if 0 <= own < count else ()


def _chained(partition, inputs):
    return chain.from_iterable(open_it() for each in inputs for open_it in each)


def _in_all(pair):
    return all(pair[1])


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
    while some := list(_take(records, size)):
        yield some
        if batch is None:
            taken = len(dump(some))
            if taken < _BEST_BYTES:
                size *= 2
            elif taken > 10 * _BEST_BYTES:
                size = max(1, size // 2)


def _take(records, count):
    for _, record in zip(range(count), records, strict=False):
        yield record


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


def _pipe(command, env, check, partition, records):
    program = subprocess.Popen(
        shlex.split(command),
        env=env or {},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    feeder = threading.Thread(target=_feed, args=(program.stdin, records), daemon=True)
    feeder.start()
    for line in program.stdout:
        yield line.rstrip(b"\n").decode()
    feeder.join()
    status = program.wait()
    if check and status:
        raise RuntimeError(f"{command!r} left with exit status {status}.")


def _feed(stdin, records: Iterable):
    with stdin:
        for record in records:
            stdin.write((str(record).rstrip("\n") + "\n").encode())
