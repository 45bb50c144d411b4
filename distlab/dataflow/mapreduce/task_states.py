"""The task schedule: the next task of a worker, and the tasks to redo after a death.

    waiting ── next_for ──▶ running ── done ──▶ completed
       ▲                       │                    │
       └──── its worker is lost, or it failed ──────┴── a map's, while reduces need it

No process, no file and no clock is here: times are passed in. So the same decisions are
made for two processes, in `job`, and for thousands of simulated ones, in `replay`.

Source: Dean and Ghemawat, "MapReduce" (2004), sections 3.3 and 3.6.
"""

import heapq
from bisect import insort
from collections import defaultdict
from typing import NamedTuple

__all__ = ["Attempt", "Task", "TaskStates"]

_SLOWER, _AT_LEAST_S = 1.5, 0.1


class Task(NamedTuple):
    """A map or reduce task. kind: "map" or "reduce"."""

    kind: str
    number: int

    def __str__(self):
        return f"{self.kind} {self.number}"


class Attempt(NamedTuple):
    """One try at a task. number: counted from 1. begun_s: when it was handed out."""

    task: Task
    number: int
    worker: int
    begun_s: float

    def __str__(self):
        return f"{self.task}, attempt {self.number}"


class TaskStates:
    """The state of all tasks.

    backups: whether a task that takes long gets a second attempt beside the first.
    completed: task -> the attempt that finished first.
    attempts: task -> how many were handed out.
    running: the attempts under way, in the order in which they were handed out.
    Invariant: a task is waiting, running or completed; another attempt at a completed
    task may still be running, and its end is ignored.
    """

    def __init__(self, maps: int, reduces: int, *, backups: bool = True):
        self.maps = [Task("map", number) for number in range(maps)]
        self.reduces = [Task("reduce", number) for number in range(reduces)]
        self.attempts = dict.fromkeys([*self.maps, *self.reduces], 0)
        self.completed = {}
        self.running = {}  # attempt -> None
        self._backups = backups
        self._waiting = {"map": self.maps[:], "reduce": self.reduces[:]}  # heaps
        self._left = {"map": maps, "reduce": reduces}  # to be completed
        self._trying = defaultdict(int)  # task -> its running attempts
        self._held = defaultdict(set)  # worker -> maps whose output is on its disk
        self._durations = {"map": [], "reduce": []}  # ascending

    @property
    def finished(self) -> bool:
        """True if every reduce task is completed."""
        return not self._left["reduce"]

    def next_for(self, worker: int, now_s: float) -> Attempt | None:
        """Return the next attempt for an idle worker, or None if there is none.

        It is the first waiting task (maps before reduces), or a backup of a slow one.
        """
        kind = "map" if self._left["map"] else "reduce"
        if self._waiting[kind]:
            return self._begin(heapq.heappop(self._waiting[kind]), worker, now_s)
        slow = self._slow(kind, now_s)
        return self._begin(slow, worker, now_s) if slow else None

    def _begin(self, task, worker, now_s):
        self.attempts[task] += 1
        self._trying[task] += 1
        attempt = Attempt(task, self.attempts[task], worker, now_s)
        self.running[attempt] = None
        return attempt

    def _slow(self, kind, now_s):
        """Return the longest-running straggler that has no backup yet, or None."""
        usual = self._durations[kind]
        if not usual or not self._backups:
            return None
        limit = max(_AT_LEAST_S, _SLOWER * _median(usual))
        for attempt in self.running:
            if now_s - attempt.begun_s <= limit:
                return None
            task = attempt.task
            alone = task.kind == kind and self._trying[task] == 1
            if alone and task not in self.completed:
                return task
        return None

    def done(self, attempt: Attempt, now_s: float) -> bool:
        """Record that an attempt finished; return True if it is its task's first."""
        task = attempt.task
        self._end(attempt)
        insort(self._durations[task.kind], now_s - attempt.begun_s)
        first = task not in self.completed
        if first:
            self.completed[task] = attempt
            self._left[task.kind] -= 1
            if task.kind == "map":
                self._held[attempt.worker].add(task)
        return first

    def failed(self, attempt: Attempt) -> None:
        """Record that an attempt failed; its task waits again."""
        self._end(attempt)
        self._wait_again(attempt.task)

    def lost(self, worker: int) -> list[Task]:
        """Record that a worker and its disk are lost; return the maps to do again.

        The committed output of a reduce task is on a shared disk, and stays.
        """
        ended = [attempt for attempt in self.running if attempt.worker == worker]
        again = [] if self.finished else sorted(self._held.pop(worker, ()))
        for task in again:
            del self.completed[task]
            self._left["map"] += 1
        for attempt in ended:
            self._end(attempt)
        for task in {*again, *(attempt.task for attempt in ended)}:
            self._wait_again(task)
        return again

    def _end(self, attempt):
        del self.running[attempt]
        self._trying[attempt.task] -= 1

    def _wait_again(self, task):
        if task not in self.completed and not self._trying[task]:
            heapq.heappush(self._waiting[task.kind], task)


def _median(ascending):
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return ascending[middle]
    return (ascending[middle - 1] + ascending[middle]) / 2
