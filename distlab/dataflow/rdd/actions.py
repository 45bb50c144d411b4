"""What runs: actions, which compute partitions and bring something of them back."""

import heapq
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial, reduce
from itertools import chain, islice
from math import ceil, sqrt

from distlab.dataflow.rdd import sampling

__all__ = ["Actions"]


class Actions:
    """The part of `RDD` that starts a job."""

    def _each(self, operation, fn, partitions=None):
        """Return fn(iterator) of each partition; then write what was to be kept."""
        fn = partial(_whole, fn)
        results = self.ctx.run(self, operation, fn, partitions)
        self._write_checkpoints()
        return results

    def _lists(self, operation, fn, partitions=None):
        """Return all that fn(iterator) yields, of each partition."""
        return list(chain(*self._each(operation, partial(_listed, fn), partitions)))

    def collect(self) -> list:
        """Return all records."""
        results = self.ctx.run(self, "collect", _list, fresh=False)
        self._write_checkpoints()
        return list(chain.from_iterable(results))

    def toLocalIterator(self, prefetchPartitions: bool = False) -> Iterator:
        """Return an iterator over all records, which asks for a partition at a time."""
        for partition in range(self.partitions):
            (records,) = self._each("toLocalIterator", list, [partition])
            yield from records

    def count(self) -> int:
        """Return how many records there are."""
        return sum(self._each("count", _count))

    def reduce(self, f: Callable) -> object:
        """Return all records made one by f(one, other)."""
        return self._reduced("reduce", partial(_reduce, f), f)

    def _reduced(self, operation, fn, f):
        """Return the lists that `fn` makes of each partition, made one by `f`."""
        results = list(chain(*self._each(operation, fn)))
        if not results:
            raise ValueError(f"{operation} has nothing to work on: the RDD is empty.")
        return reduce(f, results)

    def fold(self, zeroValue: object, op: Callable) -> object:
        """Return all records added by op, beginning at zeroValue in each partition."""
        return self.aggregate(zeroValue, op, op)

    def aggregate(self, zeroValue: object, seqOp: Callable, combOp: Callable) -> object:
        """Return each partition's records added by seqOp, and those by combOp."""
        results = self._each("aggregate", partial(_add_up, seqOp, zeroValue))
        return reduce(combOp, results, zeroValue)

    def treeReduce(self, f: Callable, depth: int = 2) -> object:
        """Return what reduce does, brought together on the workers in `depth` steps."""
        some = self._piped("treeReduce", partial(_reduced_here, f))
        return some._tree("treeReduce", f, depth)

    def treeAggregate(
        self,
        zeroValue: object,
        seqOp: Callable,
        combOp: Callable,
        depth: int = 2,
    ) -> object:
        """Return what aggregate does, brought together in `depth` steps."""
        if self.partitions == 0 and depth >= 1:
            return zeroValue
        compute = partial(_added_here, seqOp, zeroValue)
        some = self._piped("treeAggregate", compute)
        return some._tree("treeAggregate", combOp, depth)

    def _tree(self, operation, f, depth):
        if depth < 1:
            raise ValueError(f"depth is at least 1, and got {depth!r}.")
        some, partitions = self, self.partitions
        scale = max(ceil(partitions ** (1.0 / depth)), 2)
        while partitions > scale + partitions / scale:
            partitions /= scale
            fewer = int(partitions)
            numbered = some._piped(operation, partial(_by_partition, fewer))
            some = numbered.reduceByKey(f, fewer).values()
        return some._reduced(operation, partial(_reduce, f), f)

    def take(self, num: int) -> list:
        """Return the first records, from as few partitions as that needs."""
        return self._take("take", num)

    def _take(self, operation, num):
        items, scanned = [], 0
        while len(items) < num and scanned < self.partitions:
            tried = 1
            if scanned:
                tried = 4 * scanned
                if items:
                    likely = int(1.5 * num * scanned / len(items)) - scanned
                    tried = min(max(likely, 1), tried)
            wanted = range(scanned, min(scanned + tried, self.partitions))
            left = num - len(items)
            items += chain(*self._each(operation, partial(_head, left), wanted))
            scanned += tried
        return items[:num]

    def first(self) -> object:
        """Return the first record."""
        for record in self._take("first", 1):
            return record
        raise ValueError("the RDD is empty and has no first record.")

    def isEmpty(self) -> bool:
        """Return whether there is no record."""
        return not self._take("isEmpty", 1)

    def top(self, num: int, key: Callable | None = None) -> list:
        """Return the largest records, largest first."""
        best = partial(_largest, num, key)
        return self._reduced("top", partial(_one, best), partial(_merged, best))

    def takeOrdered(self, num: int, key: Callable | None = None) -> list:
        """Return the smallest records, smallest first."""
        if num < 0:
            raise ValueError(f"num is not negative, and got {num!r}.")
        if num == 0 or self.partitions == 0:
            return []
        best = partial(_smallest, num, key)
        return self._reduced("takeOrdered", partial(_one, best), partial(_merged, best))

    def foreach(self, f: Callable) -> None:
        """Call f(record) for each record, on the workers."""
        self._each("foreach", partial(_call, f))

    def foreachPartition(self, f: Callable) -> None:
        """Call f(iterator) for each partition, on the workers."""
        self._each("foreachPartition", partial(_call_whole, f))

    def countByValue(self) -> dict:
        """Return how often each record is there."""
        return self._counted("countByValue", _tally)

    def countByKey(self) -> dict:
        """Return how many pairs each key has."""
        return self._counted("countByKey", _tally_keys)

    def _counted(self, operation, tally):
        total = defaultdict(int)
        for counts in self._each(operation, tally):
            for key, count in counts.items():
                total[key] += count
        return total

    def collectAsMap(self) -> dict:
        """Return the pairs as a dict."""
        return dict(self.collect())

    def reduceByKeyLocally(self, func: Callable) -> dict:
        """Return what reduceByKey gives, as a dict, without a shuffle."""
        total = {}
        for found in self._each("reduceByKeyLocally", partial(_by_key, func)):
            for key, value in found.items():
                total[key] = func(total[key], value) if key in total else value
        return total

    def lookup(self, key: object) -> list:
        """Return the values of a key; of one partition if it is known which."""
        found = self._piped("lookup", partial(_values_of, key))
        partitions = None
        if self.partitioner is not None:
            choose = partial(_partition_of, self.partitioner, key)
            partitions = self.ctx.run(self.ctx.one, "lookup", choose, [0])
        return found._lists("lookup", iter, partitions)

    def takeSample(
        self, withReplacement: bool, num: int, seed: int | None = None
    ) -> list:
        """Return exactly `num` records chosen by chance, or all if there are fewer."""
        if not 0 <= num <= sys.maxsize - int(10.0 * sqrt(sys.maxsize)):
            raise ValueError(f"num is not negative, and got {num!r}.")
        total = self.count() if num and self.partitions else 0
        if total == 0:
            return []
        chance = random.Random(seed)
        if not withReplacement and num >= total:
            chosen = self.collect()
        else:
            fraction = sampling.fraction_for(num, total, withReplacement)
            chosen = self.sample(withReplacement, fraction, seed).collect()
            while len(chosen) < num:
                again = chance.randint(0, sys.maxsize)
                chosen = self.sample(withReplacement, fraction, again).collect()
        chance.shuffle(chosen)
        return chosen[:num]


def _whole(fn, partition, records):
    return fn(records)


def _listed(fn, records):
    return list(fn(records))


def _list(partition, records):
    return list(records)


def _count(records):
    return sum(1 for _ in records)


def _reduce(f, records):
    for record in records:
        return [reduce(f, records, record)]
    return []


def _reduced_here(f, partition, records):
    return _reduce(f, records)


def _add_up(op, zero, records):
    return reduce(op, records, zero)


def _added_here(op, zero, partition, records):
    return [reduce(op, records, zero)]


def _by_partition(count, partition, records):
    return ((partition % count, record) for record in records)


def _head(count, records):
    return list(islice(records, count))


def _one(fn, records):
    return [fn(records)]


def _merged(best, a, b):
    return best(a + b)


def _largest(num, key, records):
    return heapq.nlargest(num, records, key=key)


def _smallest(num, key, records):
    return heapq.nsmallest(num, records, key=key)


def _call(f, records):
    for record in records:
        f(record)


def _call_whole(f, records):
    made = f(records)
    if hasattr(made, "__iter__"):
        for _ in made:
            pass


def _tally(records):
    counts = defaultdict(int)
    for record in records:
        counts[record] += 1
    return counts


def _tally_keys(records):
    return _tally(record[0] for record in records)


def _by_key(func, records):
    found = {}
    for key, value in records:
        found[key] = func(found[key], value) if key in found else value
    return found


def _values_of(wanted, partition, records):
    return (value for key, value in records if key == wanted)


def _partition_of(partitioner, key, partition, records):
    return partitioner(key)
