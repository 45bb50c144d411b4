"""What makes another RDD of one, record by record or partition by partition."""

import reprlib
import shlex
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain

from distlab.dataflow.rdd import sampling
from distlab.dataflow.rdd.partitioning import portable_hash
from distlab.errors import InvalidArgument

__all__ = ["Transformations"]

_BEST_BYTES = 2**16


class Transformations:
    """The part of `RDD` that needs no keys."""

    def map(self, f: Callable, preservesPartitioning: bool = False):
        """Return f(record) of each record."""
        return self._piped(
            "map", partial(_map, called(f, "map")), preservesPartitioning, True
        )

    def flatMap(self, f: Callable, preservesPartitioning: bool = False):
        """Return all that f(record) yields, of each record."""
        return self._piped(
            "flatMap",
            partial(_flat_map, called(f, "flatMap")),
            preservesPartitioning,
            True,
        )

    def filter(self, f: Callable):
        """Return the records for which f(record) is true."""
        return self._piped("filter", partial(_filter, called(f, "filter")), True, True)

    def mapPartitions(self, f: Callable, preservesPartitioning: bool = False):
        """Return all that f(iterator over a partition) yields, of each partition."""
        compute = partial(_map_partition, called(f, "mapPartitions"))
        return self._piped("mapPartitions", compute, preservesPartitioning)

    def mapPartitionsWithIndex(self, f: Callable, preservesPartitioning: bool = False):
        """Return all that f(partition's number, iterator) yields."""
        compute = partial(_map_indexed, called(f, "mapPartitionsWithIndex"))
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
        return self._piped("keyBy", partial(_key_by, called(f, "keyBy")), False, True)

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

    def pipe(self, command: str, env: dict | None = None, checkCode: bool = False):
        """Return the lines that a program prints, given each record as a line."""
        return self._piped("pipe", partial(_pipe, command, env, checkCode))


def called(f: object, operation: str) -> Callable:
    """Return `f`, which has to be a function.

    Raises: InvalidArgument.
    """
    if not callable(f):
        raise InvalidArgument(
            f"{operation} takes a function, and got {reprlib.repr(f)}. If you wrote "
            f"{operation}(f(x)), leave the brackets away: {operation}(f)."
        )
    return f


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


def _in_all(pair):
    return all(pair[1])


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
