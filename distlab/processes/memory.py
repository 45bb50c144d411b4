"""Memory of a process: anonymous files, large pages, resident bytes, trimming."""

import ctypes
import mmap
import os
import sys
import tempfile

__all__ = ["anonymous_file", "resident_bytes", "return_free_memory", "use_large_pages"]

_LARGE_BYTES = 2**21
_COLLAPSE = 25


def anonymous_file(name: str) -> int:
    """Return a descriptor of a file in memory that has no name in any folder."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())


def use_large_pages() -> None:
    """Collapse this process's memory into large pages, as far as the system can.

    A fork copies one page table entry per page, and its exit frees as many: a process
    with torch imported is then forked in half the time. Takes some tenths of a second.
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
    """Return a process's resident bytes; 0 if it has ended, or there is no /proc."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError):
        return 0


def return_free_memory() -> None:
    """Return the freed memory that malloc retains to the system, where glibc can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
