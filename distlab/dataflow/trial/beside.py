"""A process beside a trusted one: a fork of it that can only compute and answer."""

import ctypes
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable

from distlab.calls.raised import described
from distlab.processes.child import die_with, forget_randomness, keep_only
from distlab.processes.guard import guard_for_good
from distlab.processes.memory import limit_memory

__all__ = [
    "FRAME_BYTES",
    "Ended",
    "alone",
    "beside",
    "cannot_be_read",
    "end_as",
    "told_of",
]

FRAME_BYTES = 2**28  # of what it may say at a time
_MEMORY_BYTES = 2**31
_WORDS, _FRAMES = 1000, 10
_PR_SET_DUMPABLE = 4


class Ended(Exception):
    """The process of the functions has ended. status: its own, as `waitpid` has it."""

    def __init__(self, status: int):
        super().__init__("the function ended its own process")
        self.status = status


def beside(live: Callable[[socket.socket], None], hidden: tuple = ()) -> tuple:
    """Return (socket, pid) of a new process that does live(its own socket).

    hidden: folders of which it can read nothing. Its frames end with `live`.
    """
    ours, theirs = socket.socketpair()
    cannot_be_read()
    owner = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            ours.detach()
            keep_only([theirs.fileno()])
            alone(owner)
            # a thread has none of the frames that this fork has from its owner
            one = threading.Thread(target=_guarded, args=(live, theirs, hidden))
            one.start()
            one.join()
        finally:
            os._exit(0)
    theirs.close()
    return ours, pid


def _guarded(live, sock, hidden):
    guard_for_good(hidden=hidden)
    live(sock)


def cannot_be_read() -> None:
    """Let nobody who runs as the same user read or write this process's memory.

    On Linux; elsewhere the system has no such thing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def alone(owner: int) -> None:
    """Have no output, no files and not too much memory, and end with the owner."""
    die_with(owner)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    forget_randomness()
    limit_memory(_MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def end_as(ended: Ended) -> None:
    """End this process as that of the functions has ended."""
    if os.WIFSIGNALED(ended.status):
        os.kill(os.getpid(), os.WTERMSIG(ended.status))
    os._exit(os.WEXITSTATUS(ended.status))


def told_of(error: BaseException) -> dict:
    """Return the facts of what was raised, cut to what somebody can read."""
    facts = described(error)
    frames = facts["frames"]
    if len(frames) > 2 * _FRAMES:
        facts["frames"] = frames[:_FRAMES] + frames[-_FRAMES:]
    for name in ("type", "message", "because"):
        facts[name] = str(facts[name])[:_WORDS]
    return facts
