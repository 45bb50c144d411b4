"""Servers that begin as a fork of another one, and servers that several owners share.

    desk ── branch(KERNEL, CHECKING) ─▶ server: CHECKING ── fork ─▶ server: and the rest
      │                                    ▲                           ▲
      └── worker, with what is `lend` ─────┴─── sessions of its own ───┘

What takes seconds to import is imported once, however many processes start others.
"""

import json
import os
import select
import socket
import subprocess
from collections.abc import Sequence
from functools import partial

from distlab.processes.child import Child, on_its_own
from distlab.processes.group import Processes
from distlab.processes.server import serve
from distlab.processes.server_handle import ServerHandle

__all__ = ["borrow", "branch", "lend", "main"]


def branch(preload: Sequence[str], trunk: Sequence[str]) -> None:
    """Start a server, unless it is there, as a fork of the one with `trunk`.

    preload: what it has imported in the end, and what `trunk` has is a part of that.
    """
    ServerHandle.start(preload, "fork", by=partial(_Branch, trunk))


def lend(preload: Sequence[str]) -> int:
    """Return a descriptor by which others open sessions with a server from here."""
    return ServerHandle.start(preload, "fork").master.fileno()


def borrow(preload: Sequence[str], descriptor: int) -> None:
    """Use a server that another process has lent; if it is gone, have one's own."""
    ServerHandle.take_in(preload, socket.socket(fileno=descriptor), _Lent)


class _Branch:
    """A server that another one has forked, with the face of one that was started."""

    def __init__(self, trunk, arguments, errors):
        _, master, _, modules = arguments
        self._processes = Processes(
            1, f"{__name__}:main", preload=trunk, shared=[master, errors]
        )
        self._processes.send(0, json.dumps(modules).encode())

    def poll(self):
        """Return None as long as it runs."""
        return 0 if self._processes.wait_ended(0) else None

    def kill(self):
        """Kill it."""
        self._processes.stop()

    def wait(self, timeout=None):
        """Wait until it has ended."""
        if not self._processes.wait_ended(timeout or 2**31):
            raise subprocess.TimeoutExpired("the server", timeout)
        self._processes.stop()


class _Lent:
    """Another process's server, with the face of one that was started."""

    def __init__(self, master):
        self._gone = select.poll()
        self._gone.register(master, select.POLLHUP)

    def poll(self):
        """Return None as long as it runs."""
        return 0 if self._gone.poll(0) else None

    def kill(self):
        """Leave it: it is its owner's."""

    def wait(self, timeout=None):
        """Do not wait for it."""


def main(child: Child) -> None:
    """Be a server from now on."""
    modules = json.loads(child.receive())
    on_its_own()
    master, errors = child.shared
    for descriptor in (1, 2):
        os.dup2(errors, descriptor)
    serve(master, os.getppid(), modules)
