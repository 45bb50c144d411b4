"""All-reduces against the backend's own, and against each other, on the same ranks.

NCCL where there is a GPU, which ranks share if there are too few; else gloo.

    python tests/bench/all_reduce.py [MiB] [times]

They take turns, so that whatever else the machine does hits all of them. A time is
that of the slowest rank. "own / this" is the median over the turns of the time of the
backend's own divided by this one's: above 1 this one is faster. "best" compares the
fastest turn of each, which other jobs have disturbed least. "busy" is the processor
time of all the ranks: once it fills the cores, no better order of messages can win
time.
"""

import resource
import statistics
import sys
import time

import torch
import torch.distributed as dist

from distlab import World, collectives, run
from distlab.launch.machine import count_gpus

NAMES = ["ring", "pipelined_ring", "halving_doubling", "double_tree", "tree", "naive"]


def own(comm, tensor):
    """Let torch's process group do it."""
    dist.all_reduce(tensor)


def names(device):
    """Return the names of the ways; on NCCL a pipelined ring waits for itself."""
    return [name for name in NAMES if (name, device) != ("pipelined_ring", "cuda")]


def turns(comm, size_bytes, times):
    """Return, for each way and turn, seconds and processor seconds of this rank."""
    found = collectives.variants("all_reduce")
    ways = [own] + [found[f"{name}_all_reduce"] for name in names(comm.device.type)]
    tensor = torch.ones(size_bytes // 4, device=comm.device)
    taken, device = [[] for _ in ways], torch.get_device_module(comm.device)
    for _ in range(times + 1):
        for way, each in zip(ways, taken, strict=True):
            tensor.fill_(1)
            device.synchronize()
            comm.barrier()
            began, busy = time.perf_counter(), _busy_s()
            way(comm, tensor)
            device.synchronize()
            each.append((time.perf_counter() - began, _busy_s() - busy))
            assert tensor[0] == tensor[-1] == comm.world_size
    return [each[1:] for each in taken]  # the first turn makes connections


def backend():
    """Return how to open a World here, and its device in words."""
    if not count_gpus():
        return {"backend": "gloo"}, "gloo"
    how = {"backend": "nccl", "share_gpu": True}
    names = run(lambda comm: torch.cuda.get_device_name(), 1, **how).results
    return how, f"NCCL on {count_gpus()} x {names[0]}"


def _busy_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    """Print a table for two and for four ranks."""
    mebibytes, times = (
        [*map(int, sys.argv[1:]), 25, 25][:2] if sys.argv[1:] else (25, 25)
    )
    how, device = backend()
    kind = "cpu" if device == "gloo" else "cuda"
    for ranks in (2, 4):
        with World(ranks, **how) as world:
            world.timeout_s = 600
            found = world.run(turns, mebibytes * 2**20, times)
        print(
            f"\n{mebibytes} MiB of float32 on {ranks} ranks of {device}, {times} turns"
        )
        print(f"{'':20}{'median':>10}{'best':>10}{'busy':>10}", end="")
        print(f"{'own / this':>14}{'best':>8}")
        owns = None
        for name, *by_rank in zip(["own", *names(kind)], *found.results, strict=True):
            slowest = [max(each)[0] for each in zip(*by_rank, strict=True)]
            busy = [sum(b for _, b in each) for each in zip(*by_rank, strict=True)]
            owns = owns or slowest
            ratio = statistics.median(a / b for a, b in zip(owns, slowest, strict=True))
            figures = (
                statistics.median(slowest),
                min(slowest),
                statistics.median(busy),
            )
            print(f"{name:20}", "".join(f"{x * 1e3:7.1f} ms" for x in figures), end="")
            print(f"{ratio:14.2f}{min(owns) / min(slowest):8.2f}")


if __name__ == "__main__":
    main()
