"""What a task is at, noted before it begins, where it outlives the worker.

A function that ends its process leaves no exception that could tell. So the last
attempt of a task that has cost several workers writes each record down first, which
takes longer.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

__all__ = ["Deaths", "noting"]


@contextmanager
def noting(path: str | None) -> Iterator[Callable[[str], None] | None]:
    """Open a note at `path`; give the function that writes what the task is at.

    None for both is the usual case: nothing is noted.
    """
    if path is None:
        yield None
        return
    note = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        yield partial(_write, note)
    finally:
        os.close(note)


def _write(note, what):
    os.pwrite(note, what.encode(errors="backslashreplace") + b"\0", 0)


class Deaths:
    """How many workers each task has cost, beside those that were to be killed.

    folder: where notes are kept. most: after so many a task is given up.
    """

    def __init__(self, folder: str, most: int):
        self._folder, self._most = folder, most
        self._counts = Counter()

    def note(self, task: object, worker: int) -> str | None:
        """Return the path of the note that a task's next attempt is to keep, if any."""
        if self._counts[task] < self._most - 1:
            return None
        return os.path.join(self._folder, f"note-{worker}")

    def count(self, task: object, lost: object) -> tuple[str, str] | None:
        """Count a worker that a task has cost; if the task is to be given up, return
        why, and what is known of its last attempt.

        lost: a `Lost` of the pool's.
        """
        note = self.note(task, lost.worker)
        self._counts[task] += not lost.planned
        if self._counts[task] < self._most:
            return None
        at = ""
        with suppress(FileNotFoundError), open(note, "rb") as file:
            at = file.read().partition(b"\0")[0].decode()
        at = f"\n\n    The last time: {at}" if at else ""
        return f"its worker {lost.how}, {self._most} times", at
