"""Notes of the record that a task is processing, in a file that outlives the worker.

A function that ends its process leaves no exception. So the last attempt of a task
that has killed several workers writes each record to a note first, which takes longer.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["Deaths", "noting"]


@contextmanager
def noting(path: str | None) -> Iterator[Callable[[str], None] | None]:
    """Open a note at `path`; yield the function that writes the current record to it.

    In the usual case `path` is None: it yields None, and nothing is noted.
    """
    if path is None:
        yield None
        return
    note = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)

    def write(what):
        os.pwrite(note, what.encode(errors="backslashreplace") + b"\0", 0)

    try:
        yield write
    finally:
        os.close(note)


class Deaths:
    """Counts of the worker deaths at each task, without the planned ones.

    folder: the folder of notes. most: deaths after which a task is given up.
    """

    def __init__(self, folder: str, most: int):
        self._folder, self._most = folder, most
        self._counts = Counter()

    def note(self, task: object, worker: int) -> str | None:
        """Return the path of the note of a task's next attempt, or None."""
        if self._counts[task] < self._most - 1:
            return None
        return os.path.join(self._folder, f"note-{worker}")

    def count(self, task: object, lost: object) -> tuple[str, str] | None:
        """Count a worker's death at a task; if the task is to be given up, return
        (reason, the note of its last attempt), else None.

        lost: the pool's `WorkerLost`.
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
