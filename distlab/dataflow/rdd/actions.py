"""Actions: the operations that compute partitions and return a result."""

import heapq
from collections import Counter
from collections.abc import Callable
from functools import partial, reduce
from itertools import chain, islice

__all__ = ["Actions"]


class Actions:
    """The part of `RDD` that starts a job."""

    def _each(self, operation, fn, partitions=None):
        """Return fn(iterator) of each partition; write the requested checkpoints."""
        fn = partial(_whole, fn)
        results = self.ctx.run(self, operation, fn, partitions)
        self._write_checkpoints()
        return results

    def collect(self) -> list:
        """Return all records."""
        return list(chain.from_iterable(self._each("collect", list)))

    def collectAsMap(self) -> dict:
        """Return the pairs as a dict."""
        return dict(self.collect())

    def lookup(self, key: object) -> list:
        """Return the values of a key."""
        found = self._each("lookup", partial(_values_of, key))
        return list(chain.from_iterable(found))

    def count(self) -> int:
        """Return the number of records."""
        return sum(self._each("count", _count))

    def reduce(self, f: Callable) -> object:
        """Return all records combined by f(one, other)."""
        return self._reduced("reduce", partial(_reduce, f), f)

    def _reduced(self, operation, fn, f):
        """Return the items of fn(iterator) of all partitions, combined by `f`."""
        results = list(chain(*self._each(operation, fn)))
        if not results:
            raise ValueError(f"{operation} has nothing to work on: the RDD is empty.")
        return reduce(f, results)

    def fold(self, zeroValue: object, op: Callable) -> object:
        """Return all records combined by op, from zeroValue on in each partition."""
        return self.aggregate(zeroValue, op, op)

    def aggregate(self, zeroValue: object, seqOp: Callable, combOp: Callable) -> object:
        """Return each partition's records folded by seqOp, and those by combOp."""
        results = self._each("aggregate", partial(_add_up, seqOp, zeroValue))
        return reduce(combOp, results, zeroValue)

    def sum(self) -> float:
        """Return the sum of the numbers."""
        return sum(self._each("sum", sum))

    def mean(self) -> float:
        """Return the mean of the numbers."""
        total, count = self._reduced("mean", _sum_and_count, _added)
        return total / count

    def max(self, key: Callable | None = None) -> object:
        """Return the largest record, by key(record) if that is given."""
        choose = partial(max, key=key)
        return self._reduced("max", partial(_reduce, choose), choose)

    def min(self, key: Callable | None = None) -> object:
        """Return the smallest record, by key(record) if that is given."""
        choose = partial(min, key=key)
        return self._reduced("min", partial(_reduce, choose), choose)

    def take(self, num: int) -> list:
        """Return the first records, from as few partitions as that needs."""
        return self._take("take", num)

    def _take(self, operation, num):
        """Return `num` records; read one partition first, then four times as many."""
        items, scanned = [], 0
        while len(items) < num and scanned < self.partitions:
            stop = min(scanned + max(1, 4 * scanned), self.partitions)
            head = partial(_head, num - len(items))
            items += chain(*self._each(operation, head, range(scanned, stop)))
            scanned = stop
        return items[:num]

    def first(self) -> object:
        """Return the first record."""
        for record in self._take("first", 1):
            return record
        raise ValueError("the RDD is empty and has no first record.")

    def isEmpty(self) -> bool:
        """Return True if there is no record."""
        return not self._take("isEmpty", 1)

    def top(self, num: int, key: Callable | None = None) -> list:
        """Return the largest records, largest first."""
        return self._best("top", partial(heapq.nlargest, num, key=key))

    def takeOrdered(self, num: int, key: Callable | None = None) -> list:
        """Return the smallest records, smallest first."""
        return self._best("takeOrdered", partial(heapq.nsmallest, num, key=key))

    def _best(self, operation, best):
        return best(chain.from_iterable(self._each(operation, best)))

    def foreach(self, f: Callable) -> None:
        """Call f(record) for each record, on the workers."""
        self._each("foreach", partial(_call, f))

    def countByValue(self) -> dict:
        """Return the number of times that each record occurs."""
        return self._counted("countByValue", Counter)

    def countByKey(self) -> dict:
        """Return the number of pairs of each key."""
        return self._counted("countByKey", _count_keys)

    def _counted(self, operation, counted):
        total = Counter()
        for counts in self._each(operation, counted):
            total.update(counts)
        return total


def _whole(fn, partition, records):
    return fn(records)


def _values_of(wanted, records):
    return [value for key, value in records if key == wanted]


def _count(records):
    return sum(1 for _ in records)


def _reduce(f, records):
    for record in records:
        return [reduce(f, records, record)]
    return []


def _add_up(op, zero, records):
    return reduce(op, records, zero)


def _sum_and_count(records):
    total = count = 0
    for record in records:
        total += record
        count += 1
    return [(total, count)] if count else []


def _added(one, other):
    return one[0] + other[0], one[1] + other[1]


def _head(count, records):
    return list(islice(records, count))


def _call(f, records):
    for record in records:
        f(record)


def _count_keys(records):
    return Counter(key for key, _ in records)
