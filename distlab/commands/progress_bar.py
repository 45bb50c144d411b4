"""Progress bars in a terminal, in the look of `distlab.calls.progress`."""

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
)

__all__ = ["GradingBar", "bar_columns"]

_SHOWN_NAMES = 3


def bar_columns(unit: str) -> list[ProgressColumn]:
    """Return a bar, a counter such as 3/7, and `unit`, a word such as "cells"."""
    bar = BarColumn(20, complete_style="green", finished_style="green")
    return [bar, MofNCompleteColumn(), TextColumn(unit)]


class GradingBar:
    """A progress bar of graded submissions, with the time left and current students.

    doing: a label until the first is graded. stays: True if the bar is left on the
    screen at the end. Only a terminal shows it.
    """

    def __init__(self, console: Console, doing: str = "", *, stays: bool = True):
        self._progress = Progress(
            *bar_columns("graded"),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}"),
            console=console,
            transient=not stays,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task(doing, total=None, left="")
        self._begun = None

    def show(self, finished: int, total: int, names: list[str]) -> None:
        """Update the bar; names: the students whose submissions are being graded."""
        now = time.monotonic()
        self._begun = self._begun or now
        left = _left(now - self._begun, finished, total)
        names = _shortened(names)
        bar = {"completed": finished, "total": total, "description": names}
        self._progress.update(self._bar, left=left, **bar)

    def __enter__(self):
        self._progress.start()
        return self

    def __exit__(self, *_):
        self._progress.stop()


def _shortened(names):
    rest = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + rest


def _left(took_s, finished, total):
    """Return the estimated time left as text, such as "2 min 05 s left"."""
    if not finished:
        return ""
    left_s = took_s / finished * (total - finished)
    minutes, seconds = divmod(round(left_s), 60)
    return f"{minutes} min {seconds:02} s left" if minutes else f"{seconds} s left"
