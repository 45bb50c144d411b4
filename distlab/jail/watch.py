"""What all processes of a jail use together, looked at again and again.

Memory that forks share is counted once: `exact` has the system divide it among those
that share it. That takes milliseconds for each process, so it is asked only when a
bound that is quickly had, everything resident, has come too far. It also waits for
processes that fork just then, so a thread asks: a fork bomb would stop who waits.
"""

import os
import re
import resource
import threading
import time
from collections.abc import Callable, Iterable

from distlab.jail.limits import Limits
from distlab.units import MiB

__all__ = ["Watch"]

_PAGE_BYTES = resource.getpagesize()
_EXACT_AGAIN_S = 1.0
_SELDOM = 4  # looks at the processes for each look at what takes longer
_MOST_FILES = 50_000
_NEARLY_FULL = 2**16


class Watch:
    """Looks at the processes of a jail.

    members: returns their pids. disks: file systems of the jail's own. folders: folders
    of a larger one.
    """

    def __init__(
        self,
        limits: Limits,
        members: Callable[[], Iterable[int]],
        *,
        disks: Iterable[str] = (),
        folders: Iterable[str] = (),
    ):
        self._limits, self._members = limits, members
        self._disks, self._folders = disks, folders
        self._exact, self._bound = 0, 0
        self._asking, self._asked_at = None, 0.0
        self._looks = 0
        self._apart_bytes = 0  # of files in memory that have no name
        self._folder_bytes = 0

    def exceeded(self) -> str:
        """Return a sentence about the first limit that is exceeded, "" if none is."""
        members = list(self._members())
        if len(members) > self._limits.processes:
            return f"it started more than {self._limits.processes} processes"
        self._looks += 1
        if self._looks % _SELDOM == 0:
            self._apart_bytes = _nameless_bytes(members)
            self._folder_bytes = sum(map(_folder_bytes, self._folders))
        if self._memory_bytes(members) > self._limits.memory_bytes:
            return f"it used more than {_binary(self._limits.memory_bytes)} of memory"
        if self._folder_bytes > self._limits.disk_bytes or any(map(_full, self._disks)):
            return f"it wrote more than {_binary(self._limits.disk_bytes)} of files"
        return ""

    def _memory_bytes(self, members):
        """Return a number that is above the limit only if what they use was."""
        bound = sum(map(_resident_bytes, members)) + self._apart_bytes
        if bound <= self._limits.memory_bytes:
            return bound
        least = self._exact + max(0, bound - self._bound)
        old = time.monotonic() - self._asked_at > _EXACT_AGAIN_S
        free = self._asking is None or not self._asking.is_alive()
        if free and (old or least > self._limits.memory_bytes):
            self._asked_at = time.monotonic()
            asked = members, bound
            self._asking = threading.Thread(target=self._ask, args=asked, daemon=True)
            self._asking.start()
        return self._exact

    def _ask(self, members, bound):
        """Find the exact number; in a thread, since a process can hold this up."""
        shares = [_exact_bytes(pid) for pid in members]
        of_own, of_files = (sum(share[k] for share in shares) for k in (0, 1))
        self._exact, self._bound = of_own + max(of_files, self._apart_bytes), bound


def _resident_bytes(pid):
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0  # it has ended


def _exact_bytes(pid):
    """Return its own share of memory of processes, and of files in memory."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            kept = dict(re.findall(r"^Pss_(\w+): +(\d+) kB", file.read(), re.M))
    except OSError:
        return 0, 0
    return 1024 * int(kept.get("Anon", 0)), 1024 * int(kept.get("Shmem", 0))


def _nameless_bytes(members):
    """Return what is in files in memory that processes have open, mapped or not."""
    found = {}
    for pid in members:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{name}"
                if os.readlink(path).startswith("/memfd:"):
                    about = os.stat(path)
                    found[about.st_ino] = about.st_blocks * 512
        except OSError:
            continue  # it has ended, or closed the file
    return sum(found.values())


def _folder_bytes(folder):
    """Return what is in a folder; too many files count as too much."""
    total, count, todo = 0, 0, [folder]
    while todo and count < _MOST_FILES:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    count += 1
                    about = entry.stat(follow_symlinks=False)
                    total += about.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError:
            continue  # it is gone, or closed even to its owner
    return total if count < _MOST_FILES else 2**62


def _full(disk):
    about = os.statvfs(disk)
    return about.f_bavail * about.f_frsize < _NEARLY_FULL or not about.f_favail


def _binary(count):
    many = count >= 1024 * MiB
    return f"{count / (1024 * MiB):.3g} GiB" if many else f"{count / MiB:.3g} MiB"
