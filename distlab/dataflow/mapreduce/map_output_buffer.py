"""The table of a map task: its pairs in memory, combined and spilled when too large.

    pairs ─▶ key -> values ─ too large? ─▶ combine ─ still? ─▶ spill: a sorted run per
               (a dict)                                        partition, on disk
                    └─────────────── end of the task ────────▶ one file: merge of all

Grouping by a hash table before sorting makes a job with few distinct keys fast: one
entry per key is sorted, written and moved, not one per pair.
"""

import os
import reprlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from numbers import Integral, Number

from distlab.dataflow.mapreduce.sorted_runs import Run, fan_in, merged, narrowed, write
from distlab.dataflow.memory_estimate import counted_bytes, lists_bytes
from distlab.dataflow.user_functions import Functions, applied, stable_hashes, unordered
from distlab.dataflow.worker import AtRecord, commit

__all__ = ["MapOutputTable"]

_LOOKS = 8  # while the memory fills


class MapOutputTable:
    """The pairs of one map task, in memory and in spilled runs.

    counts: the task's counters so far.
    path: of the file that `finish` writes, and the prefix of temporary files' names.
    Invariant: when it spills depends on the pairs alone, not on the state of the
    process's memory, so that a task that runs again writes the same bytes.
    """

    def __init__(
        self, functions: Functions, reducers: int, memory_bytes: int, path: str
    ):
        self.counts = Counter()
        self._values = defaultdict(list)  # of each key
        self._one = None  # the value that came last, if it came again and again,
        self._times = Counter()  # and how often after `_values` with each key
        self._functions = functions
        self._reducers = reducers
        self._most_bytes = memory_bytes // 2  # the rest is for sorting and writing
        self._fan_in = fan_in(memory_bytes // 2)
        self._path = path
        self._spills = []  # each a list of runs, one per partition
        self._room = 1  # how many pairs until the next look
        self._last_bytes = 0
        self._known = 0  # values that were in the table when last counted

    def take(self, pairs: Iterator) -> None:
        """Add pairs, as many as are safe before the next look."""
        pairs = islice(pairs, self._room)
        self._times.update(self._with_one(pairs))
        values = self._values
        for key, value in pairs:
            values[key].append(value)

    def _with_one(self, pairs):
        """Yield the keys of pairs as long as they have one and the same value.

        Most jobs that count have the same object, such as 1, in every pair. The number
        of times per key is enough then, and Counter's own loop counts it.
        """
        for key, value in islice(pairs, 1):
            if value is not self._one:
                self._list_values()
                self._one = value
            yield key
        one = self._one
        for key, value in pairs:
            if value is not one:
                self._list_values()
                self._values[key].append(value)
                return
            yield key

    def _list_values(self):
        """Expand the keys that were only counted into lists of values."""
        for key, times in self._times.items():
            self._values[key] += [self._one] * times
        self._times.clear()

    def look(self) -> None:
        """Combine or spill if memory is short; set the number of pairs until the next
        look from the growth of the table.
        """
        size = self._size()
        growth = max(1.0, (size - self._last_bytes) / self._room)
        if size > self._most_bytes:
            self._combine()
            size = self._size()
            if size > self._most_bytes // 2:
                self._spill()
                size = 0
        self._last_bytes = size
        fitting = int(self._most_bytes / _LOOKS / growth)
        self._room = max(1, min(fitting, 4 * self._room))

    def _size(self):
        return lists_bytes(self._values) + counted_bytes(self._times)

    def _count(self):
        """Count the pairs that came since the last time."""
        count = sum(map(len, self._values.values())) + self._times.total()
        self.counts["mapped_records"] += count - self._known
        self._known = count

    def _combine(self):
        """Apply the combiner, if there is one, to each key with several values."""
        self._count()
        if self._functions.combiner is not None:
            self._list_values()
            table = self._values
            several = ((key, each) for key, each in table.items() if len(each) > 1)
            for key, fewer in self._combined(several):
                table[key] = list(fewer)
            self._known = sum(map(len, table.values()))

    def _combined(self, groups: Iterable) -> Iterable:
        combiner = self._functions.combiner
        return groups if combiner is None else applied(combiner, "combiner", groups)

    def _spill(self):
        path = f"{self._path}.spill-{len(self._spills)}"
        runs = self._write(path, "spilled")
        self._spills.append(runs)
        self._values.clear()
        self._times.clear()
        self._known = 0

    def _write(self, path, what):
        """Write the table to a file, sorted and combined, a run for each partition."""
        runs = []
        with open(path, "wb") as file:
            for keys in self._partitions():
                start = file.tell()
                groups = self._combined(self._groups(keys))
                self.counts[f"{what}_records"] += write(file, groups)
                runs.append(Run(path, start, file.tell()))
        self.counts[f"{what}_bytes"] += runs[-1].end
        return runs

    def _groups(self, keys):
        """Return (key, values) of each key, after `_partitions`."""
        if self._values:
            lists = map(self._values.__getitem__, keys)
        else:
            lists = map([self._one].__mul__, map(self._times.__getitem__, keys))
        return zip(keys, lists, strict=True)

    def _partitions(self):
        """Return the keys of each partition, in order."""
        parts = [[] for _ in range(self._reducers)]
        if self._values:
            self._list_values()
        held = self._values or self._times
        for key, number in zip(held, self._numbers(held), strict=True):
            parts[number].append(key)
        for keys in parts:
            _sort(keys)
        return parts

    def _numbers(self, keys):
        """Yield the partition of each key."""
        choose, count = self._functions.partitioner, self._reducers
        if choose is None:
            for number in stable_hashes(keys):
                yield number % count
            return
        try:
            for key in keys:
                number = choose(key, count)
                whole = number.__class__ is int or isinstance(number, Integral)
                if not whole or not 0 <= number < count:
                    raise ValueError(
                        f"the partitioner returned {number!r}; it returns a number "
                        f"from 0 to {count - 1}, of the reducer that gets the key."
                    )
                yield number
        except Exception as error:
            place = f"The partitioner was at the key {reprlib.repr(key)}."
            raise AtRecord(place) from error

    def finish(self) -> list[Run]:
        """Write all pairs to one file, committed as a whole; return a run for each
        partition.
        """
        self._count()
        temporary = f"{self._path}.part"
        if self._spills:
            self._spill()
            runs = self._merge(temporary)
        else:
            runs = self._write(temporary, "shuffled")
        commit(temporary, self._path)
        for spill in self._spills:
            os.remove(spill[0].path)
        return [Run(self._path, run.start, run.end) for run in runs]

    def _merge(self, temporary):
        """Write the merge of all spills; return its runs."""
        merges = []
        with open(temporary, "wb") as file:
            for number in range(self._reducers):
                start = file.tell()
                spilled = [spill[number] for spill in self._spills]
                extra = f"{self._path}.merge-{number}"
                runs = narrowed(spilled, self._fan_in, extra, self._combined)
                written = write(file, self._combined(merged(runs)))
                self.counts["shuffled_records"] += written
                merges.append(Run(temporary, start, file.tell()))
                for path in {run.path for run in runs} - {r.path for r in spilled}:
                    os.remove(path)
        self.counts["shuffled_bytes"] = merges[-1].end
        return merges


def _sort(keys):
    """Sort keys in place; raise TypeError unless `<` orders all of them."""
    one_of_each = {type(key): key for key in keys}
    try:
        keys.sort()
    except TypeError:
        raise unordered(*islice(one_of_each.values(), 2)) from None
    for kind, key in one_of_each.items():
        if issubclass(kind, set | frozenset):  # their `<` is no order
            raise unordered(key)
        if issubclass(kind, Number):
            nans = [key for key in keys if key != key]
            if nans:
                raise unordered(*nans[:1])
