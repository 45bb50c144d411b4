"""A progress line for work that takes longer than two seconds."""

import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence

from distlab.calls.failure_location import source_lines
from distlab.calls.notebook_frontend import cell_number, person_is_there, show
from distlab.errors import brief_traceback

__all__ = ["Progress"]

_AFTER_S, _EVERY_S, _PAUSE_S = 2.0, 0.25, 0.5
_WIDE, _SHOWN_NAMES = 20, 3
_open = []  # the outermost, whose line it is, first
_last = None, 0.0, 0.0, None  # the last wait: its cell, begin, end, and what wrote
_GREEN, _GREY, _PLAIN = "\x1b[32m", "\x1b[90m", "\x1b[0m"


class Progress:
    """A line that is written over and over, in a notebook or a terminal.

    It appears after two seconds, and goes when the body ends; short ones of a cell
    with little between them are one wait. In a file, a pipe, or a notebook that is
    executed without a reader, there is none.
    Progress within progress shares the line. After Ctrl-C in the body the error has it.

    words: a text that a thread shows while the body waits in one place.
    """

    _words, _share, _write, _earlier, _thread = str, None, None, None, None

    def __init__(self, words: str = ""):
        self._begun_s, self._cell = time.monotonic(), cell_number()
        cell, begun_s, ended_s, write = _last
        if cell == self._cell and self._begun_s - ended_s < _PAUSE_S:
            self._begun_s, self._earlier = begun_s, write
        self._next_s = self._begun_s + _AFTER_S
        if words:
            self._words, self._over = lambda: words, threading.Event()
            self._thread = threading.Thread(target=self._tick)

    def __enter__(self):
        _open.append(self)
        if self._thread is not None:
            try:
                self._thread.start()
            except KeyboardInterrupt as error:  # `start` waits until the thread runs
                self.__exit__(type(error), error, None)
                raise
        return self

    def show(self, words: Callable[[], str], share: float | None = None) -> None:
        """Write the text `words()`, if it is time; share: the part done, 0 to 1."""
        self._words, self._share = words, share
        first = _open[0]
        if time.monotonic() >= first._next_s:
            first._update()

    def count(
        self, finished: int, total: int, unit: str, names: Sequence[str] = ()
    ) -> None:
        """Show a bar and words such as "3 of 12 graded, 20 s left: ada, bob".

        names: what is under way.
        """
        took_s = time.monotonic() - self._begun_s
        left = finished and f", {_span(took_s / finished * (total - finished))} left"
        shown = ", ".join(names[:_SHOWN_NAMES])
        more = len(names) - _SHOWN_NAMES
        now = f": {shown}" * bool(shown) + f" and {more} more" * (more > 0)
        words = f"{finished} of {total} {unit}{left or ''}{now}"
        self.show(lambda: words, finished / total if total else 1.0)

    def _tick(self):
        while not self._over.wait(_EVERY_S):
            self.show(self._words, self._share)

    def _update(self):
        now = time.monotonic()
        self._next_s = now + _EVERY_S
        self._write = self._write or self._earlier or _writer()
        words = ", ".join(filter(None, (each._words() for each in _open)))
        words = f"{words} ({now - self._begun_s:.0f} s)"
        if self._write is _in_terminal:  # a second line would stay on the screen
            words = words[: shutil.get_terminal_size().columns - _WIDE - 2]
        self._write(_bar(self._share) + words)

    @staticmethod
    def make_room() -> None:
        """Take the line off a terminal, where something else is printed now."""
        for first in _open[:1]:
            if first._write is _in_terminal:
                first._write("")

    def __exit__(self, kind, error, _):
        global _last
        if self._thread is not None:
            self._over.set()
            if self._thread.is_alive():
                self._thread.join()
        _open.remove(self)
        write = self._write or self._earlier
        _last = self._cell, self._begun_s, time.monotonic(), write
        if self._write is not None:
            self._write("")
        if isinstance(error, KeyboardInterrupt) and not error.args:
            error.args = (self._words(),)
            error._render_traceback_ = lambda: _brief(error)


def _brief(error):
    """Return the lines for a notebook: the progress, and the learner's frames."""
    walked = traceback.walk_tb(error.__traceback__)
    frames = [(at.f_code.co_filename, line, at.f_code.co_name) for at, line in walked]
    return [*brief_traceback(error), "", *source_lines(frames)]


def _bar(share):
    if share is None:
        return ""
    done = round(_WIDE * min(1.0, share))
    return f"{_GREEN}{'━' * done}{_GREY}{'━' * (_WIDE - done)}{_PLAIN} "


def _span(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"


def _writer():
    """Return a function that replaces the shown text by another."""
    if cell_number() is None:
        return _in_terminal if sys.stdout.isatty() else lambda text: None
    if not person_is_there():
        return lambda text: None
    handle = show({"text/plain": ""})
    return lambda text: handle.update({"text/plain": text}, raw=True)


def _in_terminal(text):
    # The cursor is left at the beginning, so what is printed next takes the line over.
    print(f"\r\x1b[K{text}\r", end="", flush=True)
