"""What a task is at, noted before it begins, where it outlives the worker.

A function that ends its process leaves no exception that could tell. So the last
attempt of a task that has cost several workers writes each record down first, which
takes longer.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

__all__ = ["noted", "noting"]


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


def noted(path: str) -> str:
    """Return what was noted last, or nothing."""
    try:
        with open(path, "rb") as file:
            return file.read().partition(b"\0")[0].decode()
    except FileNotFoundError:
        return ""
