"""The executor inside a worker: it computes one partition of one data set per task.

    source ─▶ map ─▶ filter ─▶ ...    one iterator on top of the other: a record passes
                                      the whole chain before the next one is read
      ├── kept? then read from the cache, or computed and put there
      └── shuffled? then the pieces of all map tasks, one after the other

An executor lives as long as its process, and with it its cache.
"""

import errno
import gc
import os
import pickle
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from distlab.calls.serialize import pack
from distlab.dataflow.rdd import shared_variables
from distlab.dataflow.rdd.cache import Cache
from distlab.dataflow.rdd.dependencies import WorkerDataset
from distlab.dataflow.rdd.failure_location import (
    learners_frame,
    note_record,
    where,
    with_notes,
)
from distlab.dataflow.rdd.shuffle import PieceLost, read_pieces, write_pieces
from distlab.dataflow.rdd.spilling_aggregation import Memory
from distlab.dataflow.record_notes import noting
from distlab.dataflow.worker import AtRecord

__all__ = ["Executor", "TaskRequest", "TaskResult", "memory"]

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_memory = None  # of the task that this process is doing


class TaskRequest(NamedTuple):
    """A task, as it is sent to a worker.

    program: path of the file with the serialized chains, and last the use of the
    records: a function (partition, iterator), or the arguments of a shuffle.
    node, partition: the data set and partition to compute. shuffle: the map task's path
    to write to, None for a result. levels: storage level of every kept data set.
    pieces: (shuffle, partition) -> (path, segments) of each map task.
    dropped: data sets, and paths of broadcasts, to drop first.
    note: path of a note to keep of every record, see `record_notes`.
    """

    program: str
    node: int
    partition: int
    home: str
    shuffle: str | None
    levels: dict
    pieces: dict
    dropped: tuple
    note: str | None = None


class TaskResult(NamedTuple):
    """The result of a task.

    output: the packed result, or a MapOutput; None if a piece was lost, which is then
    `lost`. computed, reused: (data set, partition) in order. gained, evicted: in the
    cache. added: accumulator -> the sum added. counts: of spills and broadcasts.
    """

    output: object
    lost: str | None
    computed: list
    reused: list
    gained: list
    evicted: list
    added: dict
    counts: dict


class Executor:
    """The state of a worker: its cache, and the memory limit of its tasks."""

    def __init__(self, memory_bytes: int):
        self._memory_bytes = memory_bytes
        self._cache = None

    def run(self, order: TaskRequest) -> TaskResult:
        """Run a task; return its result."""
        global _memory
        if self._cache is None:
            self._cache = Cache(self._memory_bytes // 2, order.home)
            gc.set_threshold(100_000, 20, 20)
        for each in order.dropped:
            (shared_variables.forget if isinstance(each, str) else self._cache.drop)(
                each
            )
        os.makedirs(order.home, exist_ok=True)
        spills = os.path.join(order.home, f"spill-{order.node}-{order.partition}")
        _memory = Memory(self._memory_bytes // 2, spills)
        return _RunningTask(order, self._cache, _memory).run()


def memory() -> Memory:
    """Return the Memory of the task that this process is running."""
    return _memory


class _RunningTask:
    """One task: its steps, and the partitions it has computed and reused so far."""

    def __init__(self, order, cache, memory):
        self.order = order
        self.cache = cache
        self.memory = memory
        self.computed, self.reused = [], []
        self.fetched_before = shared_variables.fetched()
        self.steps = {}
        self.last = None
        self.say = None

    def run(self):
        with noting(self.order.note) as self.say:
            return self._done()

    def _done(self):
        order = self.order
        accumulators = shared_variables.begin()
        try:
            self._load()
            output, lost = self._output(self.records(order.node, order.partition)), None
        except PieceLost as error:
            output, lost = None, str(error)
        except Exception as error:
            frame, owner = learners_frame(error, self.steps, self.last)
            if frame is None and getattr(error, "errno", None) in _NO_ROOM:
                raise  # it is not about any record
            place = where(frame, owner, self.steps, order.partition)
            raise AtRecord(place) from error
        finally:
            gained, evicted = self.cache.gained, self.cache.lost
            self.cache.gained, self.cache.lost = [], []
        added = {number: each._value for number, each in accumulators.items()}
        counts = {
            "spilled_records": self.memory.spilled_records,
            "spilled_bytes": self.memory.spilled_bytes,
            "broadcasts_fetched": shared_variables.fetched() - self.fetched_before,
        }
        seen = self.computed, self.reused, gained, evicted
        return TaskResult(output, lost, *seen, added, counts)

    def _load(self):
        with open(self.order.program, "rb") as file:
            *chains, last = pickle.load(file)
        for each in reversed(chains):
            for step in pickle.loads(each):
                noted = self.say is not None and step.kind in ("piped", "shuffled")
                self.steps[step.id] = with_notes(step, self.say) if noted else step
        self.last = pickle.loads(last)

    def _output(self, records):
        order = self.order
        if self.say is not None:
            what = "an action" if order.shuffle is None else "a shuffle"
            records = map(partial(note_record, self.say, what), records)
        if order.shuffle is not None:
            return write_pieces(order.shuffle, records, self.last, self.memory)
        return pack(self.last(order.partition, records), "a worker")

    def records(self, number, partition):
        """Return an iterator over a partition, from the cache if it is there."""
        step, level = self.steps[number], self.order.levels.get(number)
        if level is None:
            return self._compute(step, partition)
        key = number, partition
        kept = self.cache.get(key)
        if kept is not None:
            self.reused.append(key)
            return kept
        records = self._compute(step, partition)
        return self.cache.put(key, level, records)

    def _compute(self, step, partition):
        self.computed.append((step.id, partition))
        if step.kind == "source":
            return iter(step.compute(partition))
        if step.kind == "piped":
            return self._pipe(step, partition)
        if step.kind == "shuffled":
            pieces = self.order.pieces.get((step.inputs[0], partition))
            if pieces is None:
                raise PieceLost(f"shuffle {step.inputs[0]}")
            return iter(step.compute(partition, read_pieces(pieces)))
        inputs = [
            [partial(self.records, parent, needed) for needed in needs(partition)]
            for parent, needs in step.inputs
        ]
        return iter(step.compute(partition, inputs))

    def _pipe(self, step, partition):
        """Return an iterator over the chain of piped steps that ends with `step`."""
        line = [step]
        parent = step.inputs[0][0]
        while self.steps[parent].kind == "piped" and parent not in self.order.levels:
            line.append(self.steps[parent])
            self.computed.append((parent, partition))
            parent = line[-1].inputs[0][0]
        records = self.records(parent, partition)
        for each in reversed(line):
            records = _iterated(each, each.compute(partition, records))
        return records


def _iterated(step: WorkerDataset, made: object) -> Iterator:
    """Return an iterator over the result of a step's function for a partition.

    Raises: TypeError if the result is not iterable.
    """
    try:
        return iter(made)
    except TypeError:
        raise TypeError(
            f"the function given to {step.name} returned {made!r}. It is called with "
            "an iterator over a partition and returns one, or a list, or yields."
        ) from None
