"""Who does which task next, and what has to be done again after a death.

    waiting ── next_for ──▶ running ── done ──▶ completed
       ▲                       │                    │
       └──── its worker is lost, or it failed ──────┴── a map's, while reduces need it

No process, no file and no clock is here: times are handed in. So the same decisions can
be replayed for thousands of machines.

Source: Dean and Ghemawat, "MapReduce" (2004), sections 3.3 and 3.6.
"""

import statistics
from typing import NamedTuple

__all__ = ["Attempt", "Schedule", "Task"]

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


class Schedule:
    """The state of all tasks.

    backups: whether a task that takes long gets a second attempt beside the first.
    completed: task -> the attempt that finished first.
    attempts: task -> how many were handed out.
    Invariant: a task is waiting, running or completed, and of a completed one another
    attempt may still be running, whose end means nothing.
    """

    def __init__(self, maps: int, reduces: int, *, backups: bool = True):
        self.maps = [Task("map", number) for number in range(maps)]
        self.reduces = [Task("reduce", number) for number in range(reduces)]
        self.attempts = dict.fromkeys([*self.maps, *self.reduces], 0)
        self.completed = {}
        self.running = []
        self._backups = backups
        self._durations = {"map": [], "reduce": []}

    @property
    def finished(self) -> bool:
        """Whether every reduce task is completed."""
        return all(task in self.completed for task in self.reduces)

    def next_for(self, worker: int, now_s: float) -> Attempt | None:
        """Hand out an attempt to an idle worker, if there is one for it to make."""
        tasks = [task for task in self.maps if task not in self.completed]
        tasks = tasks or [task for task in self.reduces if task not in self.completed]
        busy = {attempt.task for attempt in self.running}
        waiting = [task for task in tasks if task not in busy]
        if waiting:
            return self._begin(waiting[0], worker, now_s)
        slow = self._slow(tasks, now_s)
        return self._begin(slow, worker, now_s) if slow else None

    def _begin(self, task, worker, now_s):
        self.attempts[task] += 1
        attempt = Attempt(task, self.attempts[task], worker, now_s)
        self.running.append(attempt)
        return attempt

    def _slow(self, tasks, now_s):
        """Return the task that needs a backup most: longer at work than others were."""
        alone = [a for a in self.running if a.task in tasks and not self._doubled(a)]
        if not alone or not self._backups:
            return None
        first = min(alone, key=lambda attempt: attempt.begun_s)
        usual = self._durations[first.task.kind]
        if not usual:
            return None
        limit = max(_AT_LEAST_S, _SLOWER * statistics.median(usual))
        return first.task if now_s - first.begun_s > limit else None

    def _doubled(self, attempt):
        return sum(other.task == attempt.task for other in self.running) > 1

    def done(self, attempt: Attempt, now_s: float) -> bool:
        """Take in that an attempt finished; return whether it was its task's first."""
        self.running.remove(attempt)
        self._durations[attempt.task.kind].append(now_s - attempt.begun_s)
        first = attempt.task not in self.completed
        if first:
            self.completed[attempt.task] = attempt
        return first

    def failed(self, attempt: Attempt) -> None:
        """Take in that an attempt came to nothing; its task waits again."""
        self.running.remove(attempt)

    def lost(self, worker: int) -> list[Task]:
        """Take in that a worker is gone, with its disk; return the maps to do again.

        What a reduce task has committed is not on the worker's own disk, and stays.
        """
        self.running = [a for a in self.running if a.worker != worker]
        again = [] if self.finished else self._maps_of(worker)
        for task in again:
            del self.completed[task]
        return again

    def _maps_of(self, worker):
        done = self.completed
        return [
            task for task in self.maps if task in done and done[task].worker == worker
        ]
