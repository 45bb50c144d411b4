"""The workers of one Context, their folder, and the locations of their data."""

import os
import shutil
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

import cloudpickle

from distlab.dataflow.rdd.executor import Executor
from distlab.dataflow.rdd.locations import Locations
from distlab.dataflow.workers import WorkerLost, Workers, folder_in
from distlab.errors import WorkdirError
from distlab.faults import WorkerFault

__all__ = ["WorkerPool"]

_TICK_S = 0.05


class WorkerPool:
    """A pool of workers, each with a copy of an executor.

    folder: all its files. locations: the map outputs and kept partitions of workers.
    accumulators: by their numbers.
    next_node, next_shuffle, next_stage: return the next number of each.
    """

    def __init__(
        self,
        workers: int,
        memory_bytes: int,
        faults: Sequence[WorkerFault],
        workdir: str | os.PathLike | None,
    ):
        self.folder = folder_in(workdir)
        self.locations = Locations()
        self.accumulators = []
        self.next_node = count().__next__
        self.next_shuffle = count().__next__
        self.next_stage = count().__next__
        self._garbage = deque()
        self._files = count()
        self._dropped = defaultdict(list)  # worker -> data sets, broadcasts to drop
        os.mkdir(os.path.join(self.folder, "notebook"))
        executor = cloudpickle.dumps(Executor(memory_bytes))
        try:
            self.pool = Workers(workers, executor, folder=self.folder, faults=faults)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def lost(self, worker: int) -> None:
        """Record that a worker and its data are lost; a new one is in its place."""
        self._dropped.pop(worker, None)
        self.locations.lost(worker)

    def kill(self, worker: int) -> None:
        """Kill an idle worker, and wait until another one is in its place."""
        self.pool.kill(worker)
        lost = set()
        while worker not in lost:
            lost = {
                w.worker for w in self.pool.wait(_TICK_S) if isinstance(w, WorkerLost)
            }
            for each in lost:
                self.lost(each)

    def drop(self, thing: int | str) -> None:
        """Make every worker drop a data set, or a broadcast, before its next task."""
        if isinstance(thing, int):
            self.locations.forget(thing)
        for worker in range(self.pool.count):
            self._dropped[worker].append(thing)

    def when_gone(self, thing: object, do: Callable, *args) -> None:
        """Call do(*args) after the last reference to a thing is gone.

        The call waits for `clean`, between two actions, since a finalizer may run at
        any time.
        """
        later = partial(do, *args)
        weakref.finalize(thing, self._garbage.append, later).atexit = False

    def clean(self) -> None:
        """Run the removals registered for things that have no references left."""
        while self._garbage:
            self._garbage.popleft()()

    def remove_shuffle(self, number: int) -> None:
        """Remove the files of a shuffle."""
        for _, output in self.locations.outputs.pop(number, {}).values():
            self.remove(output.path)

    def remove(self, path: str) -> None:
        """Remove a file, unless it is already lost with its worker's disk."""
        with suppress(FileNotFoundError):
            os.remove(path)

    def dropped_for(self, worker: int) -> tuple:
        """Return the data sets and broadcasts a worker has to drop; clear the list."""
        return tuple(self._dropped.pop(worker, ()))

    def store(self, kind: str, data: bytes) -> str:
        """Write bytes to the notebook's own folder; return the path."""
        path = os.path.join(self.folder, "notebook", f"{kind}-{next(self._files)}")
        try:
            Path(path).write_bytes(data)
        except OSError as error:
            raise WorkdirError(f"{path} cannot be written: {error}.") from None
        return path
