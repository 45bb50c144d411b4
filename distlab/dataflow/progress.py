"""How far a job is: one line, once it takes longer than one likes to wait."""

import sys
import time

__all__ = ["Progress"]

_AFTER_S, _EVERY_S = 2.0, 0.25


class Progress:
    """A line that is written over and over, in a notebook or a terminal.

    It comes after two seconds, and is gone when the body ends. Where nobody looks, as
    in a file or a pipe, there is none.
    """

    def __init__(self):
        self._next_s = time.monotonic() + _AFTER_S
        self._write = None

    def __enter__(self):
        return self

    def show(self, done: dict[str, tuple[int, int]]) -> None:
        """Say of each kind of task how many are done, of how many."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _EVERY_S
        self._write = self._write or _writer()
        kinds = (
            f"{some} of {all_} {kind}s done" for kind, (some, all_) in done.items()
        )
        self._write(", ".join(kinds))

    def __exit__(self, *_):
        if self._write is not None:
            self._write("")


def _writer():
    """Return a function that shows a text in the place of the one before."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if hasattr(shell, "kernel"):
        return _in_notebook(
            ipython.display.display({"text/plain": ""}, raw=True, display_id=True)
        )
    return _in_terminal if sys.stdout.isatty() else lambda text: None


def _in_notebook(handle):
    return lambda text: handle.update({"text/plain": text}, raw=True)


def _in_terminal(text):
    # The cursor is left at the beginning, so what a worker prints takes the line over.
    print(f"\r\x1b[K{text}\r", end="", flush=True)
