"""Attempts at tasks, read once from a trace of workers, and the outcome of each.

    worker 0   ██ map 0 ██ ██ map 2 ██             ██ map 1, attempt 2 ██
    worker 1   ██ map 1 ██ ░░ map 3 ░░✗
                  undone      lost    killed          again

A trace has the start, end and worker of an attempt. An output was lost with its worker
if its task ran again after the worker had been killed.
"""

import re
from collections import Counter, defaultdict
from typing import NamedTuple

from distlab.show.canvas.text import literal
from distlab.show.reading.alt_text import listed, plural
from distlab.units import readable_seconds

__all__ = ["FATES", "Attempts", "Try", "WorkerDeath"]

FATES = ("done", "undone", "late", "failed", "lost", "given up")
_MARKED = ("lost", "failed", "given up")
_MOST_KINDS, _MOST_KILLS = 4, 6


class Try(NamedTuple):
    """One attempt at a task.

    kind: of its task: "map" of "map 3", "stage 1" of "stage 1, partition 3".
    fate: "done"; "undone", if its output was lost with its worker and made again;
    "late", if another attempt had been first; "lost" with its worker; "failed"; or
    "given up" at the end of the job.
    backup: True if another attempt at the same task was running when it began.
    """

    task: str
    kind: str
    number: int
    worker: int
    start: float
    end: float
    fate: str
    backup: bool

    @property
    def again(self) -> bool:
        """True if the task had been tried before, and no other attempt was running."""
        return self.number > 1 and not self.backup


class WorkerDeath(NamedTuple):
    """A worker's death. how: "was killed" or "died".

    lost: the tasks it was running. undone: the tasks whose output was on its disk and
    had to be computed again.
    """

    at_s: float
    worker: int
    how: str
    lost: list[str]
    undone: list[str]

    def described(self, who: str = "worker") -> str:
        """Return a description of the death, a sentence without its full stop."""
        said = f"{who} {self.worker} {self.how}"
        if self.lost:
            said += f" during {listed(self.lost, 3)}"
        if self.undone:
            again = "waits" if len(self.undone) == 1 else "wait"
            said += f"; {listed(self.undone, 6)}, which it had finished, {again} again"
        return said


class Attempts:
    """All attempts in a trace of workers, in order of their begin, and all deaths.

    start_s, last_s: the first and the last time known. stuck: the events that never
    ended, of which there are none: `TimeAxis` reads these names.
    """

    stuck = ()

    def __init__(self, trace):
        self.trace = trace
        faults = [event for event in trace.events if event.kind == "fault"]
        self._deaths = [(event.start, event.rank) for event in faults]
        by_task = defaultdict(list)
        for event in trace.events:
            if event.kind == "work" and event.end is not None:
                task, number, mark = _parted(event.label)
                number = number or 1 + len(by_task[task])
                by_task[task].append((event, number, mark))
        tries = [
            self._read(task, one, some)
            for task, some in by_task.items()
            for one in some
        ]
        self.tries = sorted(tries, key=lambda each: (each.start, each.worker))
        self.kinds = list(dict.fromkeys(each.kind for each in self.tries))
        self.kills = [self._kill(event) for event in faults]
        moments = [event.start for event in trace.events]
        ends = [each.end for each in self.tries]
        self.start_s = min(moments, default=0.0)
        self.last_s = max([*moments, *ends], default=0.0)

    def _read(self, task, one, some):
        event, number, mark = one
        backup = any(other.start < event.start < other.end for other, _, _ in some)
        fate = mark or self._fate(event, some)
        whole, _, part = task.rpartition(", ")
        kind = whole or re.sub(r"\s*\d+$", "", part) or task
        where = event.rank, event.start, event.end
        return Try(task, kind, number, *where, fate, backup)

    def _fate(self, event, some):
        """Return the fate of an attempt that ended normally."""
        later = [other.start for other, _, _ in some if other.start >= event.end]
        if later:
            died = self._died(event.rank, event.end, min(later))
            return "undone" if died else "failed"
        others = [other for other, _, mark in some if other is not event and not mark]
        first = any(event.start < other.end < event.end for other in others)
        return "late" if first else "done"

    def _died(self, worker, since_s, until_s):
        return any(w == worker and since_s <= at <= until_s for at, w in self._deaths)

    def _kill(self, event):
        by_death = defaultdict(list)
        for each in self.tries:
            if each.worker == event.rank and each.fate in ("lost", "undone"):
                since_s = each.start if each.fate == "lost" else each.end
                if self._death_after(event.rank, since_s) == event.start:
                    by_death[each.fate].append(each.task)
        how = "died" if event.label == "died" else "was killed"
        lost, undone = (sorted(by_death[f], key=_by_number) for f in ("lost", "undone"))
        return WorkerDeath(event.start, event.rank, how, lost, undone)

    def _death_after(self, worker, since_s):
        """Return the time of a worker's first death since `since_s`, None if none."""
        return min(
            (at for at, w in self._deaths if w == worker and at >= since_s),
            default=None,
        )

    def kind_of(self, task: str) -> str:
        """Return the kind of a task."""
        return next(each.kind for each in self.tries if each.task == task)

    @property
    def tasks(self) -> Counter:
        """The number of tasks of each kind."""
        return Counter(kind for kind, _ in {(e.kind, e.task) for e in self.tries})

    def headline(self) -> str:
        """Return workers, tasks, attempts and duration in one line."""
        workers = plural(self.trace.world_size, self.trace.who)
        if not self.tries:
            return f"{workers}, no tasks"
        kinds = [_counted(self.tasks[kind], literal(kind, 20)) for kind in self.kinds]
        parts = [workers, listed(kinds, _MOST_KINDS)]
        if len(self.tries) > sum(self.tasks.values()):
            parts.append(plural(len(self.tries), "attempt"))
        return ", ".join([*parts, readable_seconds(self.last_s - self.start_s)])

    def sentences(self) -> list[str]:
        """Return sentences on attempts that were not done at once, and on deaths."""
        said = []
        fates = Counter(each.fate for each in self.tries)
        backups = sum(each.backup for each in self.tries)
        words = {
            "lost": "lost with their worker",
            "undone": "done, and lost later with their worker's disk",
            "failed": "failed",
            "late": "done too late, after another attempt",
            "given up": "given up at the end of the job",
        }
        described = [f"{fates[fate]} {words[fate]}" for fate in words if fates[fate]]
        described += [f"{plural(backups, 'backup')}"] if backups else []
        if described:
            said.append(f"Of the attempts: {', '.join(described)}.")
        for kill in self.kills[:_MOST_KILLS]:
            words = kill.described(self.trace.who)
            when = readable_seconds(kill.at_s)
            said.append(f"At {when} {words}.")
        if len(self.kills) > _MOST_KILLS:
            said.append(f"And {len(self.kills) - _MOST_KILLS} more deaths.")
        return said


def _counted(count, kind):
    """Return "3 maps", or "3 tasks of stage 1"."""
    numbered = kind[-1:].isdigit()
    return f"{plural(count, 'task')} of {kind}" if numbered else plural(count, kind)


def _by_number(task):
    return [int(part) if part.isdigit() else 0 for part in re.split(r"(\d+)", task)]


def _parted(label):
    """Return the task, the attempt's number or 0, and its mark if it failed.

    Of "map 3, attempt 2, lost" that is "map 3", 2 and "lost".
    """
    words = literal(label, 60).split(", ")
    mark = words.pop() if len(words) > 1 and words[-1] in _MARKED else ""
    number = re.fullmatch(r"attempt (\d+)", words[-1])
    if number and len(words) > 1:
        words.pop()
    return ", ".join(words), int(number[1]) if number else 0, mark
