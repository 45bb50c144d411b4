"""`Context`: a pool of workers for actions, and the source of every lineage.

    with Context(workers=2) as sc:
        lines = sc.textFile("book.txt")
        words = lines.flatMap(str.split).map(lambda word: (word, 1))
        words.reduceByKey(lambda a, b: a + b).collect()

Names, arguments and results are those of the core of PySpark's SparkContext.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from numbers import Number

from distlab.dataflow.arguments import check_limits
from distlab.dataflow.rdd import files
from distlab.dataflow.rdd.cluster import WorkerPool
from distlab.dataflow.rdd.dependencies import DatasetNode, serialize
from distlab.dataflow.rdd.rdd import RDD
from distlab.dataflow.rdd.record_batches import read_segments
from distlab.dataflow.rdd.report import JobReport, report_of
from distlab.dataflow.rdd.scheduler import Action
from distlab.dataflow.rdd.shared_variables import Accumulator, Broadcast
from distlab.errors import ContextStopped, InvalidArgument, NestedRDD
from distlab.faults import WorkerFault, check_worker_faults
from distlab.processes import Interrupts
from distlab.units import MiB

__all__ = ["Context"]


class Context:
    """`workers` processes that compute RDDs, until `stop()` or the end of the `with`.

    memory_bytes: the limit of each worker: half for kept partitions, half for the
    tables of its current task. Data beyond that goes to disk.
    faults: `KillWorker` and `SlowWorker`, to break a run on purpose; a worker's tasks
    are counted from 1 over all actions.
    workdir: the parent of its folder; if None, the folder for temporary files.
    jobs: a report on each action, the last one at the end.
    checkpoints: the folder that `RDD.checkpoint` writes to, if there is one.

    Raises: InvalidArgument, WorkdirError; NestedWorld inside a worker.
    After Ctrl-C the Context can still be used: workers that were busy are replaced, and
    their kept partitions are lost. Workers end with the notebook's process, too.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        memory_bytes: int = 256 * MiB,
        faults: WorkerFault | Sequence[WorkerFault] = (),
        workdir: str | os.PathLike | None = None,
    ):
        check_limits("Context was made", workers=workers, memory_bytes=memory_bytes)
        faults = check_worker_faults(faults, workers)
        self.jobs = []
        self.defaultParallelism = workers
        self._lock = threading.RLock()
        self._busy = False
        self.checkpoints = None
        self._cluster = WorkerPool(workers, memory_bytes, faults, workdir)
        self._finalizer = weakref.finalize(self, _end, self._cluster.pool, os.getpid())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self) -> None:
        """Stop the workers, and remove their files."""
        self._finalizer()
        self._cluster = None

    def __repr__(self):
        if self._cluster is None:
            return "<Context, stopped>"
        return f"<Context with {self.defaultParallelism} workers>"

    def __reduce__(self):
        raise NestedRDD(
            "the Context is used inside a function that runs on workers, which cannot "
            "start a job. Use it, and its RDDs, in the notebook only."
        )

    @property
    def cluster(self) -> WorkerPool:
        """Its workers.

        Raises: ContextStopped.
        """
        if self._cluster is None:
            raise ContextStopped(
                "this Context has been stopped, and its workers and what they kept are "
                "gone. Make a new one: sc = Context(workers=2)"
            )
        return self._cluster

    def kill(self, worker: int) -> None:
        """Kill a worker's process; its kept partitions and files are lost with it.

        Another process takes its place. During an action, from another thread, this
        returns at once.
        """
        pool = self.cluster.pool
        if not isinstance(worker, int) or not 0 <= worker < pool.count:
            raise InvalidArgument(
                f"worker is a number from 0 to {pool.count - 1}, and got {worker!r}."
            )
        if self._busy:
            pool.kill(worker)
            return
        with self._lock:
            self.cluster.kill(worker)

    def _source(self, operation, partitions, compute):
        return RDD(self, operation, partitions, "source", compute)

    def parallelize(self, c: Iterable, numSlices: int | None = None) -> RDD:
        """Return an RDD of the items of `c`, cut into slices."""
        slices = _slices(numSlices, self.defaultParallelism)
        if isinstance(c, range):
            compute = partial(_part_of_range, c, slices)
            return self._source("parallelize", slices, compute)
        path, segments = self._store(list(c), slices)
        made = self._source("parallelize", slices, partial(_read_slice, path, segments))
        self.cluster.when_gone(made, self.cluster.remove, path)
        return made

    def _store(self, items, slices):
        """Write items to a file; return its path and (offset, size) of each slice."""
        cuts = [len(items) * number // slices for number in range(slices + 1)]
        parts = [
            serialize(items[first:last], what="an item given to parallelize")
            for first, last in pairwise(cuts)
        ]
        ends = [0, *accumulate(map(len, parts))]
        path = self.cluster.store("data", b"".join(parts))
        return path, list(zip(ends, map(len, parts), strict=False))

    def range(
        self,
        start: int,
        end: int | None = None,
        step: int = 1,
        numSlices: int | None = None,
    ) -> RDD:
        """Return an RDD of the numbers of range(start, end, step)."""
        start, end = (0, start) if end is None else (start, end)
        return self.parallelize(range(start, end, step), numSlices)

    def textFile(
        self, name: str | os.PathLike, minPartitions: int | None = None
    ) -> RDD:
        """Return the lines of a file, a folder or a pattern such as "logs/*.txt"."""
        least = minPartitions or min(self.defaultParallelism, 2)
        pieces = files.pieces_of(files.files_at(name), least)
        compute = partial(files.lines_of, pieces)
        return self._source("textFile", len(pieces), compute)

    def union(self, rdds: Sequence[RDD]) -> RDD:
        """Return all records of several RDDs, partition after partition."""
        if not rdds:
            raise InvalidArgument("union takes at least one RDD, and got none.")
        first, *others = rdds
        return first._union(others)

    def run(
        self,
        node: DatasetNode,
        operation: str,
        fn: Callable,
        partitions: Iterable[int] | None = None,
    ) -> list:
        """Run fn(partition, iterator) on partitions; return the results.

        operation: the action's name in its report.

        Raises: TaskFailed, NotSerializable, NestedRDD, WorkdirError, ContextStopped,
        KeyboardInterrupt.
        """
        wanted = list(range(node.partitions) if partitions is None else partitions)
        with self._lock, Interrupts() as interrupts:
            self.cluster.clean()
            action = Action(self.cluster, node, wanted, serialize(fn, [fn]))
            self._busy = True
            try:
                action.run(interrupts)
            finally:
                self._busy = False
                self.jobs.append(report_of(action, operation, len(self.jobs)))
        return [action.results[partition] for partition in wanted]

    def accumulator(self, value: complex) -> Accumulator:
        """Return a number that tasks can add to, and only the notebook can read."""
        if not isinstance(value, Number):
            raise TypeError(f"an accumulator adds numbers, and got {value!r}.")
        made = Accumulator(len(self.cluster.accumulators), value)
        self.cluster.accumulators.append(made)
        return made

    def broadcast(self, value: object) -> Broadcast:
        """Return a value that each worker fetches once, however many tasks use it."""
        data = serialize(value, what="the value of a broadcast")
        path = self.cluster.store("broadcast", data)
        return Broadcast(value, path, self.cluster.drop)

    def setCheckpointDir(self, dirName: str | os.PathLike) -> None:
        """Choose the folder that `RDD.checkpoint` writes to."""
        name = f"checkpoints-{os.getpid()}-{id(self):x}"
        self.checkpoints = os.path.join(os.path.abspath(dirName), name)
        os.makedirs(self.checkpoints, exist_ok=True)

    @property
    def lastJob(self) -> JobReport:
        """The report on the last action."""
        return self.jobs[-1]


def _end(pool, owner):
    if os.getpid() == owner:  # and not a fork of it, which has a copy of all this
        pool.close()


def _slices(given, default):
    slices = default if given is None else int(given)
    if slices < 1:
        raise InvalidArgument(
            f"numSlices is a whole number of at least 1, and got {given!r}."
        )
    return slices


def _part_of_range(numbers, slices, partition):
    size = len(numbers)
    first, last = (size * n // slices for n in (partition, partition + 1))
    return numbers[first:last]


def _read_slice(path, segments, partition):
    (items,) = read_segments(path, [segments[partition]])
    return items
