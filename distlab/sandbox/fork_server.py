"""The sandbox's template process: it has imported everything, and forks the notebooks.

It runs no code of a submission, so its reports can be trusted: that a notebook's
process has ended, or has exceeded a limit.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import sys

from distlab.processes.memory import resident_bytes, use_large_pages
from distlab.processes.server import Place, Server, import_for_forks
from distlab.sandbox import undo_patches
from distlab.sandbox.limits import Mounts, ResourceLimits, exceeded, set_limits
from distlab.sandbox.namespaces import become_nobody, enter_own, fork_in_own_pids

__all__ = ["InOwnNamespaces", "main"]


class InOwnNamespaces(Place):
    """Hooks for forks in namespaces of their own; see `namespaces`."""

    def __init__(self, limits: ResourceLimits, *, isolated: bool):
        self.limits, self.isolated = limits, isolated

    def enter(self, request):
        """Enter namespaces of mounts and network."""
        if self.isolated:
            enter_own(self.limits.disk_bytes, network=True)


class _Notebooks(InOwnNamespaces):
    """Hooks for notebooks: own pids and limits; the sandbox's loopback is shared."""

    TICK_S = 0.05

    def __init__(self, limits, *, isolated):
        super().__init__(limits, isolated=isolated)
        self.server, self._common_bytes = None, resident_bytes()
        self._mounts = Mounts()

    def fork(self, request):
        """Fork a notebook."""
        return fork_in_own_pids() if self.isolated else os.fork()

    def enter(self, request):
        """Enter a mount namespace; give up root, whom limits miss; set limits."""
        os.setsid()  # Linux shares its processors among sessions: the template has some
        if self.isolated and _is_root_outside():
            become_nobody()
        if self.isolated:
            enter_own(self.limits.disk_bytes, network=False)
        set_limits(self.limits)  # from here on: neighbors' processes are not its own

    def tick(self):
        """End the notebooks of a session that has exceeded a limit, and report it."""
        family = _descendants()
        for session in self.server.sessions:
            for pid in session.processes:
                members = [pid, *family(pid)]
                why = exceeded(self.limits, members, self._common_bytes, self._mounts)
                if why:
                    session.tell(exceeded=why)
                    # The first of its own pids ends all others with it.
                    for each in [pid] if self.isolated else members:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(each, signal.SIGKILL)


def _is_root_outside():
    """Return True if this process's user is root of the whole machine."""
    with open("/proc/self/uid_map") as file:
        return file.read().split()[:3] == ["0", "0", "65536"]


def _descendants():
    """Return a function pid -> pids of its descendants, as /proc lists them now."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))

    def below(pid):
        found, todo = [], [pid]
        while todo:
            more = children.get(todo.pop(), ())
            found += more
            todo += more
        return found

    return below


def main(described: str) -> None:
    """Run the template; described: JSON of socket, imports, limits and isolation."""
    descriptor, preload, limits, isolated = json.loads(described)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    import_for_forks(preload)
    undo_patches.remember()
    gc.freeze()
    use_large_pages()
    place = _Notebooks(ResourceLimits(*limits), isolated=isolated)
    master = socket.socket(fileno=descriptor)
    place.server = Server(master, None, os.getppid(), place)
    sys.stdout.flush()
    place.server.run()
