"""How much of the machine a jail may use."""

import resource
from typing import NamedTuple

__all__ = ["Limits", "set_limits"]

_TASKS_PER_PROCESS = 4
_PAGE_BYTES = resource.getpagesize()


class Limits(NamedTuple):
    """What all processes of a jail may use together, or each of them.

    memory_bytes, processes, disk_bytes: together. Who uses more ends the whole jail.
    files: open at once, by each. file_bytes: of one file. cpu_s: of each process.
    """

    memory_bytes: int = 2 * 2**30
    processes: int = 128
    disk_bytes: int = 512 * 2**20
    files: int = 1024
    file_bytes: int = 256 * 2**20
    cpu_s: int = 600


def set_limits(limits: Limits) -> None:
    """Have the system hold this process, and what it starts, to its limits.

    Memory counts from here: what the init had imported is shared by all.
    """
    with open("/proc/self/statm") as file:
        data_bytes = int(file.read().split()[5]) * _PAGE_BYTES
    most = {
        resource.RLIMIT_DATA: data_bytes + limits.memory_bytes,
        resource.RLIMIT_NPROC: limits.processes * _TASKS_PER_PROCESS,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.files,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for what, value in most.items():
        _, hard = resource.getrlimit(what)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(what, (value, value))
