"""How far something is: one line, once it takes longer than one likes to wait."""

import sys
import time
from collections.abc import Callable

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

    def show(self, words: Callable[[], str]) -> None:
        """Write what `words` returns, if it is time to."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _EVERY_S
        self._write = self._write or _writer()
        self._write(words())

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
