"""What a map task holds in memory, and what it does when that becomes too much.

    pairs ─▶ key -> values ─ too large? ─▶ combine ─ still? ─▶ spill: a sorted run per
               (a dict)                                        partition, on disk
                    └─────────────── end of the task ────────▶ one file: merge of all

Grouping by a hash table before sorting is what makes a job with few distinct keys fast:
what is sorted, written and moved is one entry per key, not one per pair.
"""

import os
import pickle
import reprlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

from distlab.dataflow.functions import Functions, emitted, stable_hash, unordered
from distlab.dataflow.runs import Run, in_pieces, merged, narrowed, short, write
from distlab.dataflow.worker import AtRecord, commit

__all__ = ["Table"]

_ENTRY_BYTES = 250  # of the dict, a short key and a list
_LOOKS = 8  # while the memory fills
_SAMPLE = 256


class Table:
    """The pairs of one map task, in memory and in spilled runs.

    values: key -> its values by now; the task puts pairs into it.
    counts: what the task's counters say so far.
    path: of the file that `finish` writes, and where names of temporary ones begin.
    Invariant: when it spills depends on the pairs alone, not on what the process's
    memory happens to look like, so that a task that runs again writes the same bytes.
    """

    def __init__(
        self, functions: Functions, reducers: int, memory_bytes: int, path: str
    ):
        self.values = defaultdict(list)
        self.counts = Counter()
        self._functions = functions
        self._reducers = reducers
        self._most_bytes = memory_bytes // 2  # the rest is for sorting and writing
        self._path = path
        self._spills = []  # each a list of runs, one per partition
        self._next_look = self._lines = 1
        self._last_bytes = 0
        self._known = 0  # values that were in the table when last counted

    def batches(self, lines: list[str]) -> Iterator[list[str]]:
        """Yield the lines in batches; after each of them look whether memory is short.

        How far the next look may be away follows from how fast the table has grown.
        """
        at = 0
        while at < len(lines):
            batch = lines[at : at + self._next_look]
            yield batch
            at += len(batch)
            self._next_look -= len(batch)
            if not self._next_look:
                self._look()

    def _look(self):
        size = self._size_bytes()
        growth = max(1.0, (size - self._last_bytes) / self._lines)
        if size > self._most_bytes:
            self._combine()
            size = self._size_bytes()
            if size > self._most_bytes // 2:
                self._spill()
                size = 0
        self._last_bytes = size
        fitting = int(self._most_bytes / _LOOKS / growth)
        self._next_look = self._lines = max(1, min(fitting, 4 * self._lines))

    def _size_bytes(self):
        """Estimate the memory taken, from the pickled size of a few entries."""
        table = self.values
        count = sum(map(len, table.values()))
        step = max(1, len(table) // _SAMPLE)
        some = [(key, each[:4]) for key, each in islice(table.items(), 0, None, step)]
        if not some:
            return 0
        keys_bytes = len(pickle.dumps([key for key, _ in some])) / len(some)
        seen = sum(len(each) for _, each in some)
        values_bytes = len(pickle.dumps([each for _, each in some])) / seen
        per_key = _ENTRY_BYTES + 2 * keys_bytes
        return len(table) * per_key + count * (8 + 2 * values_bytes)

    def _count(self):
        """Count the pairs that came since the last time."""
        count = sum(map(len, self.values.values()))
        self.counts["mapped_records"] += count - self._known
        self._known = count

    def _combine(self):
        self._count()
        combiner, table = self._functions.combiner, self.values
        if combiner is not None:
            for key, values in table.items():
                if len(values) > 1:
                    table[key] = list(emitted(combiner, "combiner", key, values))
            self._known = sum(map(len, table.values()))

    def _spill(self):
        path = f"{self._path}.spill-{len(self._spills)}"
        runs = self._write(path)
        self.counts["spilled_bytes"] += sum(run.end - run.start for run in runs)
        self.counts["spilled_records"] += self._known
        self._spills.append(runs)
        self.values.clear()
        self._known = 0

    def _write(self, path):
        """Write the table to a file, sorted, a run for each partition."""
        runs, table = [], self.values
        with open(path, "wb") as file:
            for keys in self._partitions():
                start = file.tell()
                entries = zip(keys, map(table.__getitem__, keys), strict=True)
                write(file, short(entries))
                runs.append(Run(path, start, file.tell()))
        return runs

    def _partitions(self):
        """Return the keys of each partition, in order."""
        choose, count = self._functions.partitioner or _by_hash, self._reducers
        parts = [[] for _ in range(count)]
        try:
            for key in self.values:
                number = choose(key, count)
                if number.__class__ is not int or not 0 <= number < count:
                    raise ValueError(
                        f"the partitioner returned {number!r}; it returns a number "
                        f"from 0 to {count - 1}, of the reducer that gets the key."
                    )
                parts[number].append(key)
        except Exception as error:
            raise AtRecord(f"It was at the key {reprlib.repr(key)}.") from error
        for keys in parts:
            _sort(keys)
        return parts

    def finish(self) -> list[Run]:
        """Write all pairs to one file, committed as a whole; return a run for each
        partition.
        """
        self._combine()
        temporary = f"{self._path}.part"
        if self._spills:
            self._spill()
            runs = self._merge(temporary)
        else:
            runs = self._write(temporary)
            self.counts["shuffled_records"] = self._known
        self.counts["shuffled_bytes"] = runs[-1].end
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
                runs = narrowed(spilled, f"{self._path}.merge-{number}", self._fewer)
                groups = merged(runs)
                fewer = ((key, self._fewer(key, values)) for key, values in groups)
                write(file, _counted(in_pieces(fewer), self.counts))
                merges.append(Run(temporary, start, file.tell()))
                for path in {run.path for run in runs} - {r.path for r in spilled}:
                    os.remove(path)
        return merges

    def _fewer(self, key, values) -> Iterable:
        combiner = self._functions.combiner
        return (
            values if combiner is None else emitted(combiner, "combiner", key, values)
        )


def _counted(pieces, counts):
    for key, values in pieces:
        counts["shuffled_records"] += len(values)
        yield key, values


def _sort(keys):
    """Sort keys, which have to be ordered by `<` among each other."""
    try:
        keys.sort()
    except TypeError:
        some, *others = {type(key): key for key in keys}.values()
        raise unordered(some, others[0] if others else some) from None
    for kind in set(map(type, keys)):
        if issubclass(kind, set | frozenset):  # their `<` is no order
            raise unordered(keys[0], keys[-1])


def _by_hash(key, count):
    return stable_hash(key) % count
