"""The desk: hands submissions to workers, one at a time each, and notices how they end.

A worker that dies is replaced, and its submission tried once more. One that takes
longer than all deadlines of a submission together is killed; nobody tries that twice.
"""

import json
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from distlab.grading.desk.handed import Handed
from distlab.preloads import CHECKING, DESK, KERNEL
from distlab.processes import Ended, Frame, Interrupts, Lines, Processes, branch, lend

__all__ = ["Done", "Pool"]

_LOOK_S = 0.2


@dataclass(frozen=True)
class Done:
    """A submission that is graded, or could not be: `trouble` says why."""

    handed: Handed
    trouble: str
    seconds: float


@dataclass
class _Task:
    key: int
    handed: Handed
    died: list[str] = field(default_factory=list)
    since: float = 0.0


class Pool:
    """`jobs` workers, and the submissions that they have.

    settings: what a worker is told first. limit_s: how long one submission may take.
    log: is given what workers and nbgrader say. is_done: asked about a submission whose
    worker died, since it may have died after its work.
    """

    def __init__(
        self,
        jobs: int,
        settings: dict,
        *,
        limit_s: float,
        log: Callable[[str], None],
        is_done: Callable[[Handed], bool],
        shared: Iterable[int] = (),
    ):
        self._jobs, self._limit_s, self._log = jobs, limit_s, log
        self._is_done, self._shared = is_done, tuple(shared)
        self._first = json.dumps(settings).encode()
        self._busy = {}

    def under_way(self) -> list[str]:
        """Return the students whose submissions are being graded now."""
        return sorted(task.handed.student for task in self._busy.values())

    def grade(self, submissions: list[Handed]) -> Iterator[Done | None]:
        """Yield each submission as it ends, and None now and then in between.

        Raises: KeyboardInterrupt, when nothing of it is left.
        """
        todo = deque(_Task(key, handed) for key, handed in enumerate(submissions))
        if not todo:
            return
        with Interrupts() as interrupts:
            count = min(self._jobs, len(todo))
            branch(KERNEL, CHECKING)
            workers = Processes(
                count,
                "distlab.grading.desk.worker:main",
                preload=DESK,
                shared=[lend(CHECKING), lend(KERNEL), *self._shared],
            )
            try:
                for index in range(count):
                    workers.send(index, self._first)
                while (todo or self._busy) and not interrupts.pending:
                    self._hand_out(workers, todo)
                    yield None
                    for event in workers.poll(_LOOK_S):
                        yield from self._take(event, workers, todo)
                    self._kill_late(workers)
            finally:
                workers.stop()  # and with them, all that they have started
                self._busy.clear()

    def _hand_out(self, workers, todo):
        for index in sorted(workers.alive - set(self._busy)):
            if not todo:
                return
            task = self._busy[index] = todo.popleft()
            task.since = time.monotonic()
            handed = task.handed
            job = {"key": task.key, "student": handed.student}
            job |= {"folder": str(handed.folder), "notes": handed.notes}
            workers.send(index, json.dumps(job).encode())

    def _take(self, event, workers, todo):
        if isinstance(event, Lines):
            self._log(event.text)
        elif isinstance(event, Frame):
            said = json.loads(event.payload)
            task = self._busy.pop(event.index)
            yield self._done(task, said["trouble"])
        elif isinstance(event, Ended):
            task = self._busy.pop(event.index, None)
            if task is not None:
                yield from self._bury(task, event.status, todo)
            if todo or self._busy:
                workers.replace(event.index)
                workers.send(event.index, self._first)

    def _bury(self, task, status, todo):
        """Try a dead worker's submission again, or give it up."""
        if self._is_done(task.handed):
            yield self._done(task, "")
            return
        how = f"was killed by signal {-status}" if status < 0 else f"exited {status}"
        task.died.append(how)
        self._log(f"The worker that graded {task.handed.student} {how}.\n")
        if time.monotonic() - task.since > self._limit_s:
            took = f"grading took more than {self._limit_s:.0f} s, and was stopped."
            yield self._done(task, took)
        elif len(task.died) == 2:
            yield self._done(task, f"its worker {task.died[0]}, and the next {how}.")
        else:
            todo.append(task)

    def _done(self, task, trouble):
        return Done(task.handed, trouble, time.monotonic() - task.since)

    def _kill_late(self, workers):
        for index, task in self._busy.items():
            if time.monotonic() - task.since > self._limit_s:
                workers.signal(index, signal.SIGKILL)
