"""A function on two GPUs, on two ranks that share one, or on two ranks of a CPU.

    report = on_two_gpus(race, on_gpu=(256 * MB,), on_cpu=(MB,))

Only the sizes differ. Everywhere, tensors must be on `comm.device`.
"""

import time
from collections.abc import Callable, Sequence

import torch

from distlab.launch.machine import count_gpus
from distlab.launch.report import Report
from distlab.launch.world import run

__all__ = ["on_two_gpus", "ratio_on_gpus", "timed_s"]

_NCCL = "Two ranks on NCCL, a GPU each."
_SHARED = "Two ranks on NCCL share one GPU: compare no times."
_GLOO = (
    "Two ranks on gloo, on CPUs, at small sizes: compare no times. With two GPUs the "
    "same cell takes NCCL and large sizes."
)


def on_two_gpus(
    fn: Callable, *, on_gpu: Sequence, on_cpu: Sequence, **options
) -> Report:
    """Call `fn(comm, *args)` on two ranks; unless `quiet`, print the backend.

    on_gpu: the arguments with NCCL. on_cpu: those with gloo, where there is no GPU.
    options: as of `run`, whose exceptions this raises.
    """
    gpus = count_gpus()
    if not options.get("quiet"):
        print(_NCCL if gpus >= 2 else _SHARED if gpus else _GLOO)
    how = {"backend": "nccl", "share_gpu": True} if gpus else {"backend": "gloo"}
    options = {"timeout_s": 300} | how | options
    return run(fn, 2, args=on_gpu if gpus else on_cpu, **options)


def ratio_on_gpus(first: float, second: float) -> str:
    """Return `first / second` as text if there are two GPUs, else that there are not.

    Times and rates of two ranks that share a device say nothing about a speed-up.
    """
    return f"{first / second:.2f}" if count_gpus() >= 2 else "only on two GPUs"


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
