"""Limits of this machine: the number of ranks, the backend, fork or spawn."""

import glob
import json
import os
import resource
import sys
from importlib.util import find_spec

from distlab.errors import InvalidArgument
from distlab.processes import FrameReceived, Processes
from distlab.units import MB, readable_bytes

__all__ = [
    "FOR_TRAINING",
    "PRELOAD",
    "available_bytes",
    "check_world_size",
    "choose_backend",
    "count_gpus",
    "shared_gpus",
    "start_method",
    "usable_cores",
]

PRELOAD = ("torch", "torch.distributed", "cloudpickle", "distlab.launch.script_rank")
PRELOAD += ("numpy", "numpy.random") if find_spec("numpy") else ()
# Imports of the first optimizer and the first backward, else made by each rank itself.
FOR_TRAINING = ("torch._dynamo", "torch.fx.experimental.symbolic_shapes")
RANK_BYTES = 40 * MB  # room for one rank; idle it takes 10, see tests/bench/memory.py
_OWN_DESCRIPTORS = 128
_DESCRIPTORS_PER_RANK = 3
_CGROUP = "/sys/fs/cgroup"
_CONTAINER_LIMITS = (  # control groups version 2, then version 1
    (f"{_CGROUP}/memory.max", f"{_CGROUP}/memory.current"),
    (
        f"{_CGROUP}/memory/memory.limit_in_bytes",
        f"{_CGROUP}/memory/memory.usage_in_bytes",
    ),
)
_gpus = {}


def start_method() -> tuple[str, str]:
    """Return the start method of ranks here, "fork" or "spawn", and the reason."""
    if sys.platform == "linux":
        return "fork", "ranks are forks of a process that has imported torch"
    return "spawn", "forking after importing torch is not safe on this system"


def start_notes() -> list[str]:
    """Return the notes for a report on the start method of its ranks."""
    method, why = start_method()
    return [] if method == "fork" else [f"Ranks were spawned, because {why}."]


def check_world_size(world_size: int, *, simulated: bool = False) -> int:
    """Return `world_size` as an int. Simulated ranks need no room on this machine.

    Raises: InvalidArgument with the number of ranks that this machine can hold.
    """
    example = "For four ranks write run(fn, 4)."
    if isinstance(world_size, bool) or not hasattr(world_size, "__index__"):
        raise InvalidArgument(
            f"world_size is a whole number, and got {world_size!r}. {example}"
        )
    world_size = world_size.__index__()
    if world_size < 1:
        raise InvalidArgument(
            f"world_size={world_size}: a world has at least one rank. {example}"
        )
    if simulated:
        return world_size
    free = available_bytes()
    if world_size * RANK_BYTES > free and world_size > 4:
        raise InvalidArgument(
            f"world_size={world_size}: that many ranks need about "
            f"{readable_bytes(world_size * RANK_BYTES)} of memory, and "
            f"{readable_bytes(free)} are free here. "
            f"Up to {max(1, free // RANK_BYTES)} ranks fit."
        )
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = (open_files - _OWN_DESCRIPTORS) // _DESCRIPTORS_PER_RANK
    if world_size > room:
        raise InvalidArgument(
            f"world_size={world_size}: this system lets a process hold enough open "
            f"files for {room} ranks. "
            "Raise the limit with `ulimit -n`, or take fewer ranks."
        )
    return world_size


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_bytes() -> int:
    """Return the free memory in bytes, within a container's limit if there is one."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/proc/meminfo") as file:
            kib = dict(line.split(":") for line in file)["MemAvailable"].split()[0]
            free = int(kib) * 1024
    except (OSError, KeyError):
        pass  # no such file here: count all the memory there is
    for limit, used in _CONTAINER_LIMITS:
        try:
            with open(limit) as limit_file, open(used) as used_file:
                free = min(free, int(limit_file.read()) - int(used_file.read()))
        except (OSError, ValueError):
            pass  # no such limit
    return max(0, free)


def count_gpus() -> int:
    """Return the number of GPUs torch can use, queried once in a separate process."""
    if not glob.glob("/dev/nvidia[0-9]*") and not os.path.exists("/dev/dxg"):
        return 0
    key = os.environ.get("CUDA_VISIBLE_DEVICES")
    if key not in _gpus:
        asked = Processes(
            1,
            "distlab.launch.rank:count_gpus",
            preload=PRELOAD,
            start_method=start_method()[0],
        )
        try:
            said = []
            while not said and asked.alive:
                said = [e for e in asked.poll(60) if isinstance(e, FrameReceived)]
            _gpus[key] = json.loads(said[0].payload) if said else 0
        finally:
            asked.stop()
    return _gpus[key]


def choose_backend(
    backend: str, world_size: int, *, share_gpu: bool = False
) -> tuple[str, list[str]]:
    """Return "gloo" or "nccl", and the notes for the report on that choice.

    share_gpu: whether ranks on NCCL may share a GPU.

    Raises: InvalidArgument for an unknown one, NCCL with too few GPUs, or shared GPUs
        without NCCL.
    """
    if backend not in ("auto", "gloo", "nccl"):
        raise InvalidArgument(
            f"backend={backend!r}: choose 'gloo' (CPU), 'nccl' (one GPU per rank) or "
            "'auto'."
        )
    if backend == "gloo":
        if share_gpu:
            raise InvalidArgument(
                "share_gpu=True is for NCCL, and gloo runs on CPUs: add "
                "backend='nccl', or leave share_gpu out."
            )
        return "gloo", []
    gpus = count_gpus()
    if gpus >= world_size:
        return "nccl", []
    has = _gpus_in_words(gpus)
    if share_gpu and gpus:
        return "nccl", [shared_gpus(world_size, gpus)]
    if backend == "nccl":
        hint = ", or share_gpu=True, with which ranks share it" if gpus else ""
        raise InvalidArgument(
            f"backend='nccl' needs a GPU for every rank: {world_size} ranks, and this "
            f"machine has {has}. Take backend='auto', which then chooses gloo{hint}."
        )
    if not gpus:
        return "gloo", []
    return "gloo", [
        f"gloo, because {world_size} ranks need {world_size} GPUs for NCCL, "
        f"and this machine has {has}."
    ]


def shared_gpus(world_size: int, gpus: float) -> str:
    """Return the note for a report on ranks that share GPUs."""
    return (
        f"{world_size} ranks share {_gpus_in_words(gpus)}. NCCL takes each rank for a "
        "machine of its own, and their messages go through sockets: compare no times."
    )


def _gpus_in_words(gpus):
    return "1 GPU" if gpus == 1 else f"{gpus:g} GPUs"
