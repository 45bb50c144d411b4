"""What a process has started, as the system lists it."""

import os
from contextlib import suppress

__all__ = ["children", "ended_children"]


def children(pid: int) -> list[int]:
    """Return the pids of a process's children, where the system lists them."""
    found = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


def ended_children() -> list[tuple[int, int]]:
    """Return (pid, exit code) of every child that has ended since the last time."""
    ended = []
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append((found[0], os.waitstatus_to_exitcode(found[1])))
    return ended
