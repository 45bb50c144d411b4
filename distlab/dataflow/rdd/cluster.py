"""The workers of one Context, their folder, and what the notebook knows of them."""

import os
import pickle
import shutil
import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import count

from distlab.dataflow.rdd.executor import Executor
from distlab.dataflow.rdd.whereabouts import Whereabouts
from distlab.dataflow.workers import Lost, Workers
from distlab.errors import WorkdirError
from distlab.faults import WorkerFault
from distlab.processes.folders import new_folder
from distlab.trace import Trace

__all__ = ["Cluster", "Numbers"]

_TICK_S = 0.05


class Numbers:
    """The next number of each kind of thing."""

    def __init__(self):
        self.node = count().__next__
        self.shuffle = count().__next__
        self.stage = count().__next__


class Cluster:
    """A pool of workers, each with a copy of an executor.

    folder: all its files. have: what is where.
    garbage: shuffles, paths and (data set,) that nobody refers to any more. It is taken
    out between two actions, as it is found at any moment, in the middle of anything.
    add: called with {accumulator: what to add} when a task's result is taken.
    """

    def __init__(
        self,
        workers: int,
        executor: Executor,
        faults: Sequence[WorkerFault],
        workdir: str | os.PathLike | None,
        add: Callable,
    ):
        self.folder = _new_folder(workdir)
        self.have = Whereabouts()
        self.numbers = Numbers()
        self.add = add
        self.garbage = deque()
        self._files = count()
        self._lives = Counter()
        self._dropped = defaultdict(list)  # worker -> what it has to forget
        os.mkdir(os.path.join(self.folder, "notebook"))
        packed = pickle.dumps(executor)
        try:
            self.pool = Workers(workers, packed, folder=self.folder, faults=faults)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def home(self, worker: int) -> str:
        """Return the folder that stands for the disk of the worker's machine."""
        return os.path.join(self.folder, f"worker-{worker}.{self._lives[worker]}")

    def lost(self, worker: int) -> None:
        """Take in that a worker is gone, with all that it had; another one is there."""
        shutil.rmtree(self.home(worker), ignore_errors=True)
        self._lives[worker] += 1
        self._dropped.pop(worker, None)
        self.have.lost(worker)

    def kill(self, worker: int) -> None:
        """Kill an idle worker, and wait until another one is in its place."""
        self.pool.kill(worker)
        while worker not in self.settle():
            pass

    def settle(self) -> list[int]:
        """Take in which workers have been lost between two actions."""
        lost = [w.worker for w in self.pool.wait(_TICK_S) if isinstance(w, Lost)]
        for worker in lost:
            self.lost(worker)
        return lost

    def drop(self, thing: int | str) -> None:
        """Have every worker forget a data set, or a broadcast, before its next task."""
        if isinstance(thing, int):
            self.have.forget(thing)
        for worker in range(self.pool.count):
            self._dropped[worker].append(thing)

    def clean(self) -> None:
        """Remove what nobody refers to any more."""
        while self.garbage:
            thing = self.garbage.popleft()
            if isinstance(thing, str):
                _remove(thing)
            elif isinstance(thing, tuple):
                self.drop(thing[0])
            else:
                for _, output in self.have.outputs.pop(thing, {}).values():
                    _remove(output.path)

    def dropped_for(self, worker: int) -> tuple:
        """Return what a worker has to forget, once."""
        return tuple(self._dropped.pop(worker, ()))

    def store(self, kind: str, data: bytes) -> str:
        """Write bytes to the notebook's own folder; return the path."""
        path = self.new_path(kind)
        try:
            with open(path, "wb") as file:
                file.write(data)
        except OSError as error:
            raise WorkdirError(f"{path} cannot be written: {error}.") from None
        return path

    def new_path(self, kind: str) -> str:
        """Return a new path in the notebook's own folder."""
        return os.path.join(self.folder, "notebook", f"{kind}-{next(self._files)}")

    def trace_since(self, began_s: float) -> Trace:
        """Return what the workers have done since then, which is second 0."""
        trace = self.pool.trace(began_s)
        events = [
            e._replace(start=e.start - began_s, end=e.end and e.end - began_s)
            for e in trace.events
        ]
        return Trace(trace.world_size, events, who=trace.who)


def _remove(path):
    try:
        os.remove(path)
    except FileNotFoundError:
        pass  # its worker has been lost, and its disk with it


def _new_folder(workdir):
    try:
        if workdir is None:
            return new_folder(in_memory=False)
        os.makedirs(workdir, exist_ok=True)
        return tempfile.mkdtemp(prefix="distlab-", dir=os.path.abspath(workdir))
    except OSError as error:
        raise WorkdirError(
            f"workdir {str(workdir)!r} cannot be used: {error}."
        ) from None
