"""Memory: without a name in any folder, in large pages, given back to the system."""

import ctypes
import mmap
import os
import sys
import tempfile

__all__ = [
    "anonymous_file",
    "resident_bytes",
    "return_free_memory",
    "use_large_pages",
]

_LARGE_BYTES = 2**21
_COLLAPSE = 25


def anonymous_file(name: str) -> int:
    """Return a descriptor of a file in memory that has no name in any folder."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())


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


def resident_bytes(pid: int | str = "self") -> int:
    """Return what is resident in a process; 0 if it has ended, or nothing tells."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError):
        return 0


def return_free_memory() -> None:
    """Return to the system what malloc keeps of freed memory, where it can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
