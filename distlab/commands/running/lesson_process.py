"""Lessons in processes of their own, several at a time.

distlab run                  process server            one lesson each
───────────                  ──────────────            ───────────────
LessonProcesses ─ session ─▶ fork() ─────────────────▶ main(child) ─▶ papermill
    ├──── "run this lesson" ───────────────────────────────▶ │          └▶ kernel
    └◀─── "a cell is done", "its result" ─────────────────── ┘
"""

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from distlab.errors import DistlabError
from distlab.patience import patience
from distlab.processes import Ended, FrameReceived, Interrupts, Processes

__all__ = ["LessonProcesses", "LessonRun", "Settings"]

_TICK_S = 0.2
_END_S = 20  # for the kernels; papermill gives one 5 s


@dataclass(frozen=True)
class Settings:
    """The settings of a run of lessons.

    cell_timeout_s: the time limit of a cell.
    parameters: the stem of a lesson -> values that take the place of those in its cell
    with the tag `parameters`, as papermill does it.
    forked: True if kernels are forks of a process that has imported torch.
    pages: True if each lesson is also written as a web page.
    """

    cell_timeout_s: int = 300
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    forked: bool = False
    pages: bool = True


@dataclass
class LessonRun:
    """The result of one lesson's run.

    page: the web page; the executed notebook itself, if no pages are written.
    total, passed: the numbers of its code cells, and of those that succeeded.
    failure: the reason of its failure, or "". It happened in code cell `passed + 1`,
    or before the first one if not `started`.
    noise: the first line it wrote to stderr. noisy: the code cells that wrote there.
    """

    name: str
    total: int
    passed: int
    started: bool
    seconds: float
    page: Path
    failure: str
    noise: str
    noisy: list[int]


class LessonProcesses:
    """At most `jobs` processes that each run one lesson after another."""

    def __init__(self, jobs: int):
        preload = ["distlab.commands.running.execute"]
        entry = "distlab.commands.running.execute:main"
        self._processes = Processes(jobs, entry, preload=preload)
        self._idle = list(range(jobs))
        self._busy = {}

    @property
    def in_flight(self) -> list[Path]:
        """Return the lessons that have begun and not ended."""
        return list(self._busy.values())

    def run(
        self,
        lessons: Sequence[Path],
        folder: Path,
        settings: Settings,
        on_progress: Callable[[Path, "LessonRun | None"], None],
    ) -> list["LessonRun"]:
        """Run the lessons and return the result of each, in their order.

        on_progress: called with a lesson and None when it begins and after each of its
        cells, and with its result at its end.

        Raises: KeyboardInterrupt, once every kernel is gone; DistlabError if one of the
        processes ends, for example because memory runs out.
        """
        waiting, runs = list(lessons), {}
        with Interrupts() as interrupts:
            while (waiting or self._busy) and not interrupts.pending:
                while waiting and self._idle:
                    self._begin(waiting.pop(0), folder, settings, on_progress)
                for what in self._processes.poll(_TICK_S):
                    lesson = self._busy.get(what.index)
                    if isinstance(what, FrameReceived):
                        ran = _read(what.payload)
                        if ran is not None:
                            runs[lesson] = ran
                            self._idle.append(what.index)
                            del self._busy[what.index]
                        on_progress(lesson, ran)
                    elif isinstance(what, Ended):
                        raise DistlabError(
                            f"the process that ran {lesson and lesson.stem} ended, "
                            f"with status {what.status}."
                        )
            if interrupts.pending:  # each process then ends its kernel
                for index in list(self._processes.alive):
                    self._processes.signal(index, signal.SIGTERM)
                self._processes.wait_ended(patience(_END_S))
        return [runs[lesson] for lesson in lessons]

    def _begin(self, lesson, folder, settings, on_progress):
        index = self._idle.pop(0)
        order = {"lesson": str(lesson), "folder": str(folder)}
        order["settings"] = asdict(settings)
        self._processes.send(index, json.dumps(order).encode())
        self._busy[index] = lesson
        on_progress(lesson, None)

    def close(self) -> None:
        """End the processes."""
        self._processes.stop()


def _read(payload):
    """Return a lesson's result; None if only one more cell is done."""
    described = json.loads(payload)
    return described and LessonRun(**described | {"page": Path(described["page"])})
