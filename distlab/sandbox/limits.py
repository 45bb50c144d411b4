"""Resource limits of a submission, and the measurements that enforce them."""

import re
import resource
from collections.abc import Iterable
from typing import NamedTuple

from distlab.processes.memory import resident_bytes
from distlab.units import MiB

__all__ = ["ResourceLimits", "exceeded", "set_limits"]

_TASKS_PER_PROCESS = 2  # a thread counts


class ResourceLimits(NamedTuple):
    """The most that a submission's processes may use, together or each.

    memory_bytes, processes: together. disk_bytes: of each temporary folder, in memory.
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


def exceeded(limits: ResourceLimits, pids: Iterable[int], baseline_bytes: int) -> str:
    """Return the limit that these processes exceed together, in words; "" if none.

    baseline_bytes: resident bytes that all share, from before their fork.
    """
    pids = list(pids)
    if len(pids) > limits.processes:
        return f"it started more than {limits.processes} processes"
    bound = sum(max(0, resident_bytes(pid) - baseline_bytes) for pid in pids)
    most = limits.memory_bytes
    if bound > most and sum(map(_own_bytes, pids)) > most:  # exact, and takes longer
        return f"it used more than {most / (1024 * MiB):.3g} GiB of memory"
    return ""


def _own_bytes(pid):
    """Return the bytes of a process's share of anonymous and shared memory (PSS)."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            kept = dict(re.findall(r"^Pss_(\w+): +(\d+) kB", file.read(), re.M))
        return 1024 * (int(kept.get("Anon", 0)) + int(kept.get("Shmem", 0)))
    except OSError:
        return 0
