"""Resource limits of a submission, and the measurements that enforce them.

Memory is what its processes have, and what is in files in memory, open or mounted: a
control group would count both, but most machines let no user make one.
"""

import os
import re
import resource
from collections import Counter
from collections.abc import Iterable
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

from distlab.processes.memory import resident_bytes
from distlab.units import MiB

__all__ = ["Mounts", "ResourceLimits", "exceeded", "set_limits"]

_TASKS_PER_PROCESS = 2  # a thread counts


class ResourceLimits(NamedTuple):
    """The most that a submission's processes may use, together or each.

    memory_bytes, processes: together. disk_bytes: of each temporary folder; they are in
    memory, and count there.
    file_bytes: of one file. cpu_s: of each process.
    """

    memory_bytes: int = 2 * 2**30
    processes: int = 128
    disk_bytes: int = 512 * 2**20
    file_bytes: int = 256 * 2**20
    cpu_s: int = 600


def set_limits(limits: ResourceLimits) -> None:
    """Set the system's limits on this process, and on all that it starts."""
    most = {
        resource.RLIMIT_NPROC: limits.processes * _TASKS_PER_PROCESS,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: 1024,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_CORE: 0,
    }
    for what, value in most.items():
        _, hard = resource.getrlimit(what)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))


def exceeded(
    limits: ResourceLimits, pids: Iterable[int], baseline_bytes: int, mounts: "Mounts"
) -> str:
    """Return the limit that these processes exceed together, in words; "" if none.

    baseline_bytes: resident bytes that all share, from before their fork.
    mounts: those of the sandbox, from before any of them.
    """
    pids = list(pids)
    if len(pids) > limits.processes:
        return f"it started more than {limits.processes} processes"
    try:
        in_files = mounts.bytes_in_files(pids)
    except _MountedMore:
        return "it mounted a file system"
    bound = sum(max(0, resident_bytes(pid) - baseline_bytes) for pid in pids)
    most = limits.memory_bytes - in_files
    # The second sum is exact, and takes longer.
    if most < 0 or (bound > most and sum(map(_own_bytes, pids)) > most):
        return (
            f"it used more than {limits.memory_bytes / (1024 * MiB):.3g} GiB of memory"
        )
    return ""


class _MountedMore(Exception):
    """A process has a mount that the sandbox did not make."""


class Mounts:
    """The mounts of the sandbox, as they are now, before any submission."""

    _OWN = ("/tmp", "/dev/shm")  # new in every notebook, and in every fork of a check

    def __init__(self):
        mounts = _mounts_of("self")
        self._points = Counter(point for point, _ in mounts)
        self._devices = {device for _, device in mounts}

    def bytes_in_files(self, pids: Iterable[int]) -> int:
        """Return the bytes of the files in memory that processes can reach.

        Raises: _MountedMore if one has mounted something.
        """
        devices, files, spaces = {}, {}, set()
        for pid in pids:
            root = f"/proc/{pid}/root"
            try:
                space = os.stat(f"/proc/{pid}/ns/mnt").st_ino
                mounts = () if space in spaces else self._checked(pid)
                for point in mounts:
                    self._add(f"{root}{point}", devices, files)
                for name in os.listdir(f"/proc/{pid}/fd"):
                    self._add(f"/proc/{pid}/fd/{name}", devices, files)
            except OSError:
                continue  # it has ended
            spaces.add(space)
        return sum(devices.values()) + sum(files.values())

    def _checked(self, pid):
        """Return the temporary folders of a process; refuse any other new mount."""
        points = Counter(point for point, _ in _mounts_of(pid))
        for point, count in points.items():
            before, own = self._points[point], point.startswith(self._OWN)
            if count > before + (2 * max(1, before) if own else 0):
                raise _MountedMore
            if own and not before and point not in self._OWN:
                raise _MountedMore
        return self._OWN

    def _add(self, path, devices, files):
        """Add what is in the file system of an open file, or in the file alone."""
        try:
            found = os.stat(path)
            kept = found.st_dev in self._devices or found.st_dev in devices
            if kept or not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)):
                return
            system = os.statvfs(path)
        except OSError:
            return
        if system.f_blocks:
            used = system.f_blocks - system.f_bfree
            devices[found.st_dev] = used * system.f_frsize
        elif found.st_blocks:  # in a file system that is nowhere mounted
            files[found.st_dev, found.st_ino] = 512 * found.st_blocks


def _mounts_of(pid):
    """Return (place, device) of each mount of a process; [] without /proc."""
    if not os.path.exists("/proc"):
        return []
    with open(f"/proc/{pid}/mountinfo") as file:
        parts = [line.split() for line in file]
    return [(each[4], os.makedev(*map(int, each[2].split(":")))) for each in parts]


def _own_bytes(pid):
    """Return the bytes of a process's share of anonymous and shared memory (PSS)."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            kept = dict(re.findall(r"^Pss_(\w+): +(\d+) kB", file.read(), re.M))
        return 1024 * (int(kept.get("Anon", 0)) + int(kept.get("Shmem", 0)))
    except OSError:
        return 0
