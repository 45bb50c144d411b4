"""How well a jail can hold on this machine, and what that means."""

import functools
import os
import sys
import time
from pathlib import Path

from distlab.errors import JailFailed, ProcessServerFailed
from distlab.jail.limits import Limits
from distlab.processes import Child, Frame, Processes

__all__ = ["best_isolation", "look", "words"]

_STARTS_S = 10.0
_WORDS = {
    "namespaces": "Each jail had files, processes and a network of its own: nothing "
    "outside could be read, written, reached or harmed from it.",
    "unprivileged user": "Each jail had a user of its own, but saw this machine's "
    "network, its processes and every file that all users may read; what is closed to "
    "others was closed to it.",
    "none": "Nothing kept the code from this machine's files, processes and network; "
    "only its memory, time and number of processes were limited.",
}


def words(isolation: str) -> str:
    """Return one sentence that says what held, and what did not."""
    return _WORDS[isolation]


@functools.cache
def best_isolation() -> str:
    """Return the best level that works here, as found by trying.

    Where Python lies in a folder that is closed to others, another user is no help.
    """
    if sys.platform != "linux":
        return "none"
    levels = ["namespaces", "unprivileged user"][: 2 if os.getuid() == 0 else 1]
    return next(filter(_works, levels), "none")


def _works(level):
    """Return whether a process that is alone in a jail of this level can use Python."""
    from distlab.jail.jail import Jail

    try:
        with Jail(Limits(), isolation=level) as jail, jail.inhabit():
            trial = Processes(1, f"{__name__}:look", alone=True)
            try:
                return _answers(trial)
            finally:
                trial.stop()
    except (JailFailed, ProcessServerFailed):
        return False


def _answers(trial):
    deadline = time.monotonic() + _STARTS_S
    while trial.alive and time.monotonic() < deadline:
        if any(isinstance(what, Frame) for what in trial.poll(0.1)):
            return True
    return False


def look(child: Child) -> None:
    """Read a file of Python's library, in the jail, and say so."""
    Path(os.__file__).read_bytes()
    child.send(b"read")
