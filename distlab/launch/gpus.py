"""A function on two GPUs, or on two ranks of a CPU if there are fewer.

    report = on_two_gpus(race, on_gpu=(256 * MB,), on_cpu=(MB,))

Only the sizes differ. On both, tensors must be on `comm.device`.
"""

import time
from collections.abc import Callable, Sequence

import torch

from distlab.launch.machine import count_gpus
from distlab.launch.report import Report
from distlab.launch.world import run

__all__ = ["on_two_gpus", "ratio_on_gpus", "timed_s"]

_NCCL = "Two ranks on NCCL, a GPU each."
_GLOO = (
    "Two ranks on gloo, on CPUs, at small sizes: compare no times. With two GPUs the "
    "same cell takes NCCL and large sizes."
)


def on_two_gpus(
    fn: Callable, *, on_gpu: Sequence, on_cpu: Sequence, **options
) -> Report:
    """Call `fn(comm, *args)` on two ranks; unless `quiet`, print the backend.

    on_gpu: the arguments on two GPUs, with NCCL. on_cpu: those with gloo, without.
    options: as of `run`, whose exceptions this raises.
    """
    enough = count_gpus() >= 2
    if not options.get("quiet"):
        print(_NCCL if enough else _GLOO)
    options = {"timeout_s": 300, "backend": "nccl" if enough else "gloo"} | options
    return run(fn, 2, args=on_gpu if enough else on_cpu, **options)


def ratio_on_gpus(first: float, second: float) -> str:
    """Return `first / second` as text if `on_two_gpus` has GPUs, else that it has none.

    Times and rates of two ranks that share a CPU say nothing about a speed-up.
    """
    return f"{first / second:.2f}" if count_gpus() >= 2 else "only on GPUs"


def timed_s(comm, work: Callable[[], object], *, times: int = 3) -> float:
    """Return the seconds that this rank takes, in the fastest of some calls.

    All ranks begin a call together. Pending work of the device counts. A first call is
    not timed: it sets up connections, kernels and memory.
    """
    device, took = torch.get_device_module(comm.device), []
    work()
    for _ in range(times):
        comm.barrier()
        device.synchronize()
        start = time.perf_counter()
        work()
        device.synchronize()
        took.append(time.perf_counter() - start)
    return min(took)
