"""Memory without a name in any folder, and how much a process may have of it."""

import ctypes
import mmap
import os
import resource
import signal
import sys
import tempfile

from distlab.processes.offspring import children

__all__ = [
    "anonymous_file",
    "give_back_at_once",
    "held_bytes",
    "limit_memory",
    "refuse_files",
    "resident_bytes",
    "use_large_pages",
]

_LARGE_BYTES = 2**21
_COLLAPSE = 25
_HELD = ("RssAnon:", "RssShmem:", "VmSwap:")
_MMAP_THRESHOLD = -3
_APART_BYTES = 2**17


def anonymous_file(name: str) -> int:
    """Return a descriptor of a file in memory that has no name in any folder."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())


def resident_bytes(pid: int) -> int:
    """Return how much memory a process uses; 0 if nobody can tell."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def held_bytes(pid: int) -> int | None:
    """Return how much memory a process and what it started hold, but for files.

    What a fork has inherited counts in it, too, and changes little afterwards: who
    wants to know what a process has added subtracts what it had at its start.

    Returns: None if the system does not tell, or the process is gone.
    """
    try:
        with open(f"/proc/{pid}/status") as file:
            lines = [line.split() for line in file]
    except OSError:
        return None
    held = [int(line[1]) * 1024 for line in lines if line[0] in _HELD]
    if not held:
        return None
    return sum(held) + sum(held_bytes(child) or 0 for child in children(pid))


def give_back_at_once() -> None:
    """Have what is free leave this process, and what is freed, as far as it is large.

    Else the allocator keeps some for later, and how much depends on what came before.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim"):
        libc.mallopt(_MMAP_THRESHOLD, _APART_BYTES)
        libc.malloc_trim(0)


def refuse_files() -> None:
    """Let this process write to no file, for good: what files hold is not weighed.

    Neither to one that is in memory and has no name.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the writing fails instead
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def limit_memory(more_bytes: int) -> None:
    """Let this process have at most so much more memory than it has, for good.

    What is mapped already does not count: a fork of the process server has mapped all
    that the server imported.
    """
    pages = 0
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def use_large_pages() -> None:
    """Have the memory of this process in large pages, as far as the system can.

    A fork copies one entry for each page, and so does its end: a process that has
    imported torch is then forked in half the time. It takes some tenths of a second.
    """
    if sys.platform != "linux" or mmap.PAGESIZE > 2**12:
        return
    libc = ctypes.CDLL(None)
    with open("/proc/self/maps") as file:
        lines = [line.split() for line in file]
    for places, rights, _, _, _, *name in lines:
        if rights == "rw-p" and name in ([], ["[heap]"]):
            begin, end = (int(place, 16) for place in places.split("-"))
            begin = -(-begin // _LARGE_BYTES) * _LARGE_BYTES
            for place in range(begin, end - _LARGE_BYTES + 1, _LARGE_BYTES):
                length = ctypes.c_size_t(_LARGE_BYTES)
                libc.madvise(ctypes.c_void_p(place), length, _COLLAPSE)
