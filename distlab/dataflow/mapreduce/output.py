"""The output of a job: its pairs, read from the parts, and a summary.

`Counters` holds records and bytes at each stage, under the usual names.
"""

import os
import reprlib
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice

from distlab.dataflow.mapreduce.sorted_runs import read
from distlab.show import folded
from distlab.show.table import html_report, text_report
from distlab.trace import Trace
from distlab.units import readable_bytes, readable_seconds

__all__ = ["Counters", "Output"]


@dataclass(frozen=True)
class Counters:
    """Records and bytes at each stage of a job; every task counts once.

    input: lines read. mapped: pairs that the mapper emitted. spilled: pairs written to
    disk before the end of their map task, because memory was short. shuffled: pairs
    that went from map to reduce tasks, after the combiner. output: pairs written by the
    reduce tasks.
    skipped: lines left out because the mapper failed on them.
    map_attempts, reduce_attempts: tasks handed out, failed, lost and backups included.
    """

    input_records: int = 0
    input_bytes: int = 0
    mapped_records: int = 0
    spilled_records: int = 0
    spilled_bytes: int = 0
    shuffled_records: int = 0
    shuffled_bytes: int = 0
    output_records: int = 0
    output_bytes: int = 0
    skipped_records: int = 0
    map_tasks: int = 0
    reduce_tasks: int = 0
    map_attempts: int = 0
    reduce_attempts: int = 0

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (stage, records, bytes) as text, in the order in which data moves."""
        counted, rows = asdict(self), []
        for what in ("input", "mapped", "spilled", "shuffled", "output"):
            size = counted.get(f"{what}_bytes")
            shown = "" if size is None else readable_bytes(size)
            rows.append((what, f"{counted[f'{what}_records']:,}", shown))
        return rows


_HEAD, _SIDES = ("", "records", "bytes"), "<>>"
_SHOWN = 4
_MOST_PLAYED = 3000  # attempts; for more, ask for show.player


class Output:
    """The output of a finished job: iterate over it for (key, value) pairs.

    They come partition by partition, and in order of key within each. They are read
    from disk as you go, so an output may be larger than memory; `dict(output)` holds it
    whole. Without a workdir the files are already unlinked, and end with this object.

    paths: the parts, one for each reduce task, if there is a workdir.
    counters: records, bytes and attempts.
    shuffled: bytes from each map task, a row each, to each reduce task.
    trace: the events of every worker, each attempt of a task as work.
    elapsed_s: seconds from the start of the worker pool to the last part.
    notes: remarks on the run for the summary, one sentence each.
    """

    def __init__(
        self,
        parts: list[str],
        *,
        counters: Counters,
        shuffled: list[list[int]],
        trace: Trace,
        elapsed_s: float,
        notes: list[str],
    ):
        self.paths = []
        self.counters = counters
        self.shuffled = shuffled
        self.trace = trace
        self.elapsed_s = elapsed_s
        self.notes = notes
        self._opened = [os.open(path, os.O_RDONLY) for path in parts]
        weakref.finalize(self, _close, self._opened)

    def __iter__(self) -> Iterator[tuple[object, object]]:
        for number in range(len(self._opened)):
            yield from self.partition(number)

    def __len__(self):
        return self.counters.output_records

    def partition(self, number: int) -> Iterator[tuple[object, object]]:
        """Yield the pairs of one reduce task, in order of key."""
        descriptor = self._opened[number]
        for key, values in read(descriptor, 0, os.fstat(descriptor).st_size):
            for value in values:
                yield key, value

    def __repr__(self):
        rows = [_HEAD, *self.counters.rows()]
        return text_report(self._headline(), rows, _SIDES, self._footnotes())

    def _repr_html_(self):
        rows = [_HEAD, *self.counters.rows()]
        table = html_report(self._headline(), rows, _SIDES, self._footnotes())
        return table + folded(self.trace, _MOST_PLAYED)

    def _headline(self):
        counted = self.counters
        maps = _plural(counted.map_tasks, "map")
        reduces = _plural(counted.reduce_tasks, "reduce")
        workers = _plural(self.trace.world_size, "worker")
        took = readable_seconds(self.elapsed_s)
        return f"{maps} and {reduces} on {workers}, {took}"

    def _footnotes(self):
        shorten = reprlib.Repr()
        shorten.maxstring = shorten.maxother = 40
        first = [shorten.repr(pair) for pair in islice(self, _SHOWN)]
        more = [", ".join(first) + ", ..." * (len(self) > _SHOWN)] if first else []
        return more + self.notes


def _plural(count, what):
    return f"{count} {what}" + "s" * (count != 1)


def _close(descriptors):
    for descriptor in descriptors:
        os.close(descriptor)
