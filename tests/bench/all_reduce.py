"""All-reduces against gloo's own, and against each other, on the same ranks.

    python tests/bench/all_reduce.py [MiB] [times]

They take turns, so that whatever else the machine does hits all of them. A time is
that of the slowest rank. "gloo / this" is the median over the turns of gloo's time
divided by this one's: above 1 it is faster than gloo. "best" compares the fastest turn
of each, which other jobs have disturbed least. "busy" is the processor time of all the
ranks: once it fills the cores, no better order of messages can win time.
"""

import resource
import statistics
import sys
import time

import torch
import torch.distributed as dist

from distlab import World, collectives

NAMES = ["ring", "pipelined_ring", "halving_doubling", "double_tree", "tree", "naive"]


def gloo(comm, tensor):
    """Let torch's process group do it."""
    dist.all_reduce(tensor)


def turns(comm, size_bytes, times):
    """Return, for each way and turn, seconds and processor seconds of this rank."""
    found = collectives.variants("all_reduce")
    ways = [gloo] + [found[f"{name}_all_reduce"] for name in NAMES]
    tensor = torch.ones(size_bytes // 4)
    taken = [[] for _ in ways]
    for _ in range(times + 1):
        for way, each in zip(ways, taken, strict=True):
            tensor.fill_(1)
            comm.barrier()
            began, busy = time.perf_counter(), _busy_s()
            way(comm, tensor)
            each.append((time.perf_counter() - began, _busy_s() - busy))
            assert tensor[0] == tensor[-1] == comm.world_size
    return [each[1:] for each in taken]  # the first turn makes connections


def _busy_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    """Print a table for two and for four ranks."""
    mebibytes, times = (
        [*map(int, sys.argv[1:]), 25, 25][:2] if sys.argv[1:] else (25, 25)
    )
    for ranks in (2, 4):
        print(f"\n{mebibytes} MiB of float32 on {ranks} ranks, {times} turns")
        print(f"{'':20}{'median':>10}{'best':>10}{'busy':>10}", end="")
        print(f"{'gloo / this':>14}{'best':>8}")
        with World(ranks) as world:
            world.timeout_s = 600
            results = world.run(turns, mebibytes * 2**20, times).results
        gloos = None
        for name, *by_rank in zip(["gloo", *NAMES], *results, strict=True):
            slowest = [max(each)[0] for each in zip(*by_rank, strict=True)]
            busy = [sum(b for _, b in each) for each in zip(*by_rank, strict=True)]
            gloos = gloos or slowest
            ratio = statistics.median(
                a / b for a, b in zip(gloos, slowest, strict=True)
            )
            figures = (
                statistics.median(slowest),
                min(slowest),
                statistics.median(busy),
            )
            print(f"{name:20}", "".join(f"{x * 1e3:7.1f} ms" for x in figures), end="")
            print(f"{ratio:14.2f}{min(gloos) / min(slowest):8.2f}")


if __name__ == "__main__":
    main()
