"""`Context`: workers that wait for actions, and the beginning of every lineage.

    with Context(workers=2) as sc:
        lines = sc.textFile("book.txt")
        words = lines.flatMap(str.split).map(lambda word: (word, 1))
        words.reduceByKey(lambda a, b: a + b).collect()

Names, arguments and results are those of PySpark's SparkContext.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from distlab.dataflow.rdd import absent
from distlab.dataflow.rdd.chunks import dump
from distlab.dataflow.rdd.cluster import Cluster
from distlab.dataflow.rdd.executor import Executor
from distlab.dataflow.rdd.graph import Node, packed
from distlab.dataflow.rdd.rdd import RDD
from distlab.dataflow.rdd.report import JobReport, report_of
from distlab.dataflow.rdd.scheduler import Action
from distlab.dataflow.rdd.shared import (
    Accumulator,
    AccumulatorParam,
    Broadcast,
    param_for,
)
from distlab.dataflow.rdd.sources import Sources
from distlab.errors import (
    CannotTravel,
    ContextStopped,
    DistlabError,
    InvalidArgument,
    NestedRDD,
    NestedWorld,
)
from distlab.faults import WorkerFault, check_worker_faults
from distlab.processes import Interrupts, inside
from distlab.units import MiB

__all__ = ["Context"]

_MOST_WORKERS = 64
_LEAST_BYTES = 2**16


class Context(Sources):
    """`workers` processes that compute RDDs, until `stop()` or the end of the `with`.

    memory_bytes: what each worker may take: half for kept partitions, half for the
    tables of the task it is doing. What is more goes to disk.
    faults: `KillWorker` and `SlowWorker`, to break a run on purpose; a worker's tasks
    are counted from 1 over all actions.
    workdir: where its folder is made; else where temporary files go.
    jobs: a report on each action, the last one at the end.

    Raises: InvalidArgument, WorkdirError; NestedWorld inside a worker.
    After Ctrl-C the Context can be used on: workers that were busy are replaced, with
    what they kept. They end with the notebook's process, too.
    """

    _executor = Executor  # what each worker is to have

    def __init__(
        self,
        workers: int = 2,
        *,
        memory_bytes: int = 256 * MiB,
        faults: WorkerFault | Sequence[WorkerFault] = (),
        workdir: str | os.PathLike | None = None,
    ):
        _check(workers, memory_bytes)
        faults = check_worker_faults(faults, workers)
        self.jobs = []
        self.defaultParallelism = workers
        self._accumulators = {}
        self._lock = threading.RLock()
        self._busy = False
        self._checkpoints = None
        add = partial(_add_to, self._accumulators)
        executor = self._executor(memory_bytes)
        self._cluster = Cluster(workers, executor, faults, workdir, add)
        self.numbers = self._cluster.numbers
        self._finalizer = weakref.finalize(self, _end, self._cluster.pool, os.getpid())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self) -> None:
        """End the workers; nothing of theirs is left."""
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

    def __getattr__(self, name):
        raise absent.of("SparkContext", name, type(self).__name__)

    @property
    def cluster(self) -> Cluster:
        """Its workers.

        Raises: ContextStopped.
        """
        if self._cluster is None:
            raise ContextStopped(
                "this Context has been stopped, and its workers and what they kept are "
                "gone. Make a new one: sc = Context(workers=2)"
            )
        return self._cluster

    @property
    def defaultMinPartitions(self) -> int:
        """How many partitions a file has at least: 2, or 1 with a single worker."""
        return min(self.defaultParallelism, 2)

    def kill(self, worker: int) -> None:
        """Kill a worker's process; what it kept and wrote is lost with it.

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

    def run(
        self,
        node: Node,
        operation: str,
        fn: Callable,
        partitions: Iterable[int] | None = None,
        *,
        fresh: bool = True,
    ) -> list:
        """Have fn(partition, iterator) called on partitions; return the results.

        operation: what the action is called in its report. fresh: whether what the
        functions of the last stage use is taken as it is now.

        Raises: TaskFailed, CannotTravel, NestedRDD, WorkdirError, ContextStopped,
        KeyboardInterrupt.
        """
        if node.ctx is not self:
            raise InvalidArgument("this RDD belongs to another Context.")
        everything = range(node.partitions)
        wanted = list(everything if partitions is None else partitions)
        for partition in wanted:
            if partition not in everything:
                raise InvalidArgument(
                    f"{node!r} has no partition {partition!r}: they count from 0."
                )
        with self._lock:
            return self._run(node, operation, fn, wanted, fresh)

    def _run(self, node, operation, fn, wanted, fresh):
        self.cluster.clean()
        last = packed(fn, [fn])
        action = Action(self.cluster, node, sorted(set(wanted)), last, fresh)
        with Interrupts() as interrupts:
            self._busy = True
            try:
                action.run(interrupts)
            finally:
                self._busy = False
                self.jobs.append(report_of(action, operation, len(self.jobs)))
        if interrupts.pending:
            raise KeyboardInterrupt
        return [action.results[partition] for partition in wanted]

    def runJob(
        self,
        rdd: RDD,
        partitionFunc: Callable,
        partitions: Sequence[int] | None = None,
        allowLocal: bool = False,
    ) -> list:
        """Return what partitionFunc(iterator) gives for each partition, in one list."""
        return rdd._lists("runJob", partitionFunc, partitions)

    def accumulator(
        self, value: object, accum_param: AccumulatorParam | None = None
    ) -> Accumulator:
        """Return something that tasks can add to, and only the notebook can read."""
        param = accum_param or param_for(value)
        made = Accumulator(len(self._accumulators), value, param)
        self._accumulators[made.aid] = made
        return made

    def broadcast(self, value: object) -> Broadcast:
        """Return a value that each worker fetches once, however many tasks use it."""
        try:
            data = dump(value)
        except DistlabError:
            raise
        except Exception as error:
            raise CannotTravel(
                f"the value of a broadcast cannot travel to a worker: {error}"
            ) from None
        path = self.cluster.store("broadcast", data)
        return Broadcast(int(path.rpartition("-")[2]), value, path, self.cluster.drop)

    def setCheckpointDir(self, dirName: str | os.PathLike) -> None:
        """Choose the folder that `RDD.checkpoint` writes to."""
        name = f"checkpoints-{os.getpid()}-{id(self):x}"
        self._checkpoints = os.path.join(os.path.abspath(dirName), name)
        os.makedirs(self._checkpoints, exist_ok=True)

    def getCheckpointDir(self) -> str | None:
        """Return that folder, or None."""
        return self._checkpoints

    @property
    def lastJob(self) -> JobReport:
        """The report on the last action."""
        return self.jobs[-1]


def _add_to(accumulators, added):
    for number, value in added.items():
        accumulators[number].add(value)


def _end(pool, owner):
    if os.getpid() == owner:  # and not a fork of it, which has a copy of all this
        pool.close()


def _check(workers, memory_bytes):
    if inside() is not None:
        raise NestedWorld(
            "Context was made inside a worker or rank, which cannot have workers of "
            "its own: return to the notebook and make it there."
        )
    if not _whole(workers) or not 1 <= workers <= _MOST_WORKERS:
        raise InvalidArgument(
            f"workers is a whole number from 1 to {_MOST_WORKERS}, and got {workers!r}."
        )
    if not _whole(memory_bytes) or memory_bytes < _LEAST_BYTES:
        raise InvalidArgument(
            f"memory_bytes is a whole number of at least {_LEAST_BYTES:,}, and got "
            f"{memory_bytes!r}."
        )


def _whole(value):
    return isinstance(value, int) and not isinstance(value, bool)
