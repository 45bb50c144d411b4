"""Child processes, as the system lists them: running ones and ended ones."""

import os
from collections.abc import Container
from contextlib import suppress

__all__ = ["children", "ended_children", "started_at", "usage"]


def children(pid: int) -> list[int]:
    """Return the pids of a process's children, where the system lists them."""
    place = "self" if pid == os.getpid() else pid
    found = _listed(place)
    # In a sandbox, /proc may be that of an outer pid namespace, with other numbers.
    return found if place == pid else [here for each in found if (here := _here(each))]


def _listed(place):
    """Return the pids of a process's children, as /proc numbers them."""
    found = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{place}/task"):
            with open(f"/proc/{place}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


def usage(pids: Container[int]) -> dict[int, list[float]]:
    """Return pid -> seconds that it ran and waited to run, of children and all below.

    It is empty where the system does not count them; its pids are those of /proc.
    """
    found, todo = {}, [each for each in _listed("self") if _here(each) in pids]
    while todo:
        pid = todo.pop()
        with suppress(OSError), open(f"/proc/{pid}/schedstat") as file:
            found[pid] = [int(ns) / 1e9 for ns in file.read().split()[:2]]
        todo += _listed(pid)
    return found


def _here(pid):
    """Return a process's pid in this process's namespace; None if it is gone."""
    own, other = _numbers("self"), _numbers(pid)
    return other[len(own) - 1] if len(other) >= len(own) > 0 else None


def _numbers(place):
    """Return a process's pids, one per namespace, in that of /proc first."""
    with suppress(OSError), open(f"/proc/{place}/status") as file:
        for line in file:
            if line.startswith("NSpid:"):
                return [int(number) for number in line.split()[1:]]
    return []


def ended_children() -> list[tuple[int, int]]:
    """Return (pid, exit code) of every child that has ended since the last call."""
    ended = []
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append((found[0], os.waitstatus_to_exitcode(found[1])))
    return ended


def started_at(pid: int) -> int:
    """Return the start of a process here, in clock ticks; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if state in "ZX" else int(fields[18])
