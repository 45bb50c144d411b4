"""A pool of worker processes: tasks out, results, exceptions and deaths back.

    give(0, fn, ...) ──▶ worker 0 ──▶ Returned(0, value)
    give(1, fn, ...) ──▶ worker 1 ──▶ Raised(1, facts)
    give(2, fn, ...) ──▶ worker 2 ──▶ WorkerLost(2, "killed ...")  and a new worker 2

When a worker's process dies, another one takes its place, under the same number and
with none of the old one's memory or files. The pool does not interpret tasks.
"""

import os
import pickle
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import cloudpickle

from distlab.calls.failure_location import source_lines, whereabouts
from distlab.calls.printed_output import Console
from distlab.errors import WorkdirError, interrupted
from distlab.faults import KillWorker, SlowWorker, WorkerFault
from distlab.processes import Ended, FrameReceived, Lines, Processes, Slowdown
from distlab.processes.folders import new_folder
from distlab.trace import Event, Trace

__all__ = ["Raised", "Returned", "WorkerLost", "Workers", "folder_in"]

_PRELOAD = (
    "cloudpickle",
    "distlab.dataflow",
    "distlab.dataflow.rdd.executor",
    "distlab.dataflow.worker",
)


class Returned(NamedTuple):
    """The result of a worker's task."""

    worker: int
    value: object


class Raised(NamedTuple):
    """A worker's task that raised; `facts` holds the exception and its location."""

    worker: int
    facts: dict

    @property
    def said(self) -> str:
        """The exception's type and message."""
        return f"{self.facts['type']}: {self.facts['message']}".rstrip(": ")

    @property
    def on_disk(self) -> bool:
        """True for an OSError on distlab's own files, outside the learner's code."""
        return self.facts["disk"] and not source_lines(self.facts["frames"])

    def lines(self) -> list[str]:
        """Return the learner's lines of code, and the record or key that failed."""
        lines = source_lines(self.facts["frames"])
        lines += [f"    {self.facts['where']}"] if self.facts["where"] else []
        because = self.facts["because"]
        return [*lines, f"    because of {because}"] if because else lines


class WorkerLost(NamedTuple):
    """A worker whose process has ended; a new one is in its place.

    planned: whether a fault was to kill it. how: its end, in words.
    """

    worker: int
    planned: bool
    how: str


class Workers:
    """A pool of `count` workers, each with at most one task at a time.

    functions: the bytes from `pack_functions`; the first argument of every task.
    folder: the workers' folder, removed when they end, whatever ends them.
    faults: the workers to kill, the tasks to kill them in, and the slow workers.
    preload: further modules that its tasks need.
    idle: the workers without a task. given: how many tasks each has been given.

    Raises: ProcessServerFailed if no process can be started.
    """

    def __init__(
        self,
        count: int,
        functions: bytes,
        *,
        folder: str,
        faults: Sequence[WorkerFault] = (),
        preload: Sequence[str] = (),
    ):
        self.count = count
        self.idle = set(range(count))
        self.given = [0] * count
        self._functions = functions
        self._folder = folder
        self._lives = [0] * count
        self._faults = faults
        self._doing = {}  # worker -> (when it began, label)
        self._killed = set()
        self._events = []
        self._console = Console(count, quiet=False, who="worker")
        self._began = time.monotonic()
        self._processes = Processes(
            count,
            "distlab.dataflow.worker:main",
            preload=_PRELOAD,
            also=preload,
            private_folder=folder,
        )
        slow = ((f.worker, f.factor) for f in faults if isinstance(f, SlowWorker))
        self._slowdown = Slowdown(self._processes, slow)
        for worker in range(count):
            self._processes.send(worker, functions)

    def now(self) -> float:
        """Return the seconds since the pool was started."""
        return time.monotonic() - self._began

    def home(self, worker: int) -> str:
        """Return the folder that stands for the disk of a worker's machine.

        It is removed when the process ends; the next process has another.
        """
        return os.path.join(self._folder, f"worker-{worker}.{self._lives[worker]}")

    def give(self, worker: int, label: str, fn: Callable, *args) -> None:
        """Send an idle worker the task `fn(functions, *args)`."""
        self.idle.remove(worker)
        self.given[worker] += 1
        self._doing[worker] = self.now(), label
        task = fn, args, self._planned(worker)
        self._processes.send(worker, cloudpickle.dumps(task))

    def kill(self, worker: int) -> None:
        """Kill a worker's process; `wait` reports it as lost, and as planned."""
        self._killed.add(worker)
        self._processes.signal(worker, signal.SIGKILL)

    def _planned(self, worker):
        return KillWorker(worker, self.given[worker]) in self._faults

    def wait(self, timeout_s: float) -> list[Returned | Raised | WorkerLost]:
        """Return results, exceptions and deaths; wait at most `timeout_s` for one."""
        for worker in list(self._killed):  # it may not have had a pid before
            self._processes.signal(worker, signal.SIGKILL)
        happened, deadline = [], time.monotonic() + timeout_s
        while not happened and (left := deadline - time.monotonic()) > 0:
            for what in self._processes.poll(self._pause(left)):
                if isinstance(what, Lines):
                    self._console.add(what.index, what.text)
                elif isinstance(what, FrameReceived):
                    happened.append(self._answer(what))
                elif isinstance(what, Ended):
                    happened.append(self._replace(what))
        return happened

    def _pause(self, left_s):
        """Stop or continue slow workers; return the seconds until the next turn."""
        if not self._slowdown:
            return left_s
        self._slowdown.beat(spared=self.idle)
        return min(left_s, Slowdown.TICK_S)

    def _answer(self, frame):
        returned, value = pickle.loads(frame.payload)
        self._note(frame.index)
        self.idle.add(frame.index)
        return (Returned if returned else Raised)(frame.index, value)

    def _replace(self, ended):
        """Start a new process in place of the ended one; return the WorkerLost."""
        worker, busy = ended.index, ended.index in self._doing
        planned = worker in self._killed or (busy and self._planned(worker))
        self._killed.discard(worker)
        self._note(worker, ", lost")
        at = self.now()
        label = "kill" if planned else "died"
        step = self.given[worker]
        self._events.append(Event(worker, at, at, "fault", None, 0, step, label))
        shutil.rmtree(self.home(worker), ignore_errors=True)
        self._lives[worker] += 1
        self._slowdown.replaced(worker)
        self._processes.replace(worker)
        self._processes.send(worker, self._functions)
        self.idle.add(worker)
        return WorkerLost(worker, planned, _how(ended.status))

    def _note(self, worker, more=""):
        """Record the task that a worker has been doing until now, as an event."""
        if worker in self._doing:
            began, label = self._doing.pop(worker)
            what = "work", None, 0, self.given[worker], label + more
            self._events.append(Event(worker, began, self.now(), *what))

    def trace(self, since_s: float = 0.0) -> Trace:
        """Return the trace of all workers, one event for each attempt of a task.

        since_s: only events that began then or later; that time is second 0.
        """
        events = [event for event in self._events if event.start >= since_s]
        for worker, (began, label) in self._doing.items():
            what = "work", None, 0, self.given[worker], f"{label}, given up"
            events.append(Event(worker, began, self.now(), *what))
        events = [
            e._replace(start=e.start - since_s, end=e.end - since_s) for e in events
        ]
        return Trace(self.count, events, who="worker")

    def interrupted(self, how_far: str) -> KeyboardInterrupt:
        """Return the exception for Ctrl-C, which lists the task of each worker."""
        self._slowdown.release()
        stacks = self._processes.stacks(self._doing)
        story = [how_far, "", "  What each worker was doing:"]
        for worker in sorted(self._doing):
            at = whereabouts(stacks.get(worker, ()))
            story.append(f"    worker {worker} was at {self._doing[worker][1]}{at}")
        return interrupted("\n".join(story), self.trace())

    def close(self) -> None:
        """Stop every worker, busy or idle, and remove their folder."""
        self._processes.stop()
        self._console.close()


def _how(status):
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"left with exit status {status}"


def folder_in(workdir: str | os.PathLike | None) -> str:
    """Make a folder in workdir, or in the default folder; return its path.

    Raises: WorkdirError.
    """
    try:
        if workdir is None:
            return new_folder(in_memory=False)
        os.makedirs(workdir, exist_ok=True)
        return tempfile.mkdtemp(prefix=".distlab-", dir=os.path.abspath(workdir))
    except OSError as error:
        where = "the folder for temporary files"
        where = where if workdir is None else f"workdir {str(workdir)!r}"
        raise WorkdirError(f"{where} cannot be used: {error}.") from None
