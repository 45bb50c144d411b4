"""A guard around functions that are not ours, in the process in which they run."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["WRITES", "Guard", "SideEffect"]

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_TOLD = "os.remove os.rename os.mkdir os.rmdir os.link os.symlink os.truncate os.system"
_TOLD += " os.exec os.fork os.posix_spawn subprocess.Popen socket.connect socket.bind"
_TOLD += " socket.sendto sqlite3.connect os.kill"
_REFUSED = set(_TOLD.split())
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


class SideEffect(RuntimeError):
    """The learner's function does something that a second attempt would do again."""


class Guard:
    """Refuses, while it is up, whatever others could see of a function but its value.

    Python asks an audit hook before it opens a file, starts a program, or imports.

    locked: packages of distlab that cannot be imported or read meanwhile.
    """

    def __init__(self, locked: tuple[str, ...] = ("distlab.grading",)):
        self.up = False
        self._locked = locked
        self._folders = tuple(os.path.join(_ROOT, *n.split("."), "") for n in locked)
        sys.dont_write_bytecode = True
        sys.addaudithook(self._asked)

    @contextmanager
    def around(self) -> Iterator[None]:
        """Be up until the body ends."""
        self.up = True
        try:
            yield
        finally:
            self.up = False

    def _asked(self, event, args):
        if not self.up:
            return
        if self._is_locked(event, args[0] if args else None):
            raise ImportError("this exercise asks for your own; the checks are locked")
        if event == "open" and args[2] & WRITES:
            raise SideEffect(f"it opens {args[0]!r} to write (a side effect)")
        if event in _REFUSED:
            raise SideEffect(f"it uses {event} (a side effect)")

    def _is_locked(self, event, name):
        if event == "import":
            return name.startswith(self._locked)
        if event != "open" or not isinstance(name, str | bytes):
            return False
        return os.path.realpath(os.fsdecode(name)).startswith(self._folders)
