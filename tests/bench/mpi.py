"""All-reduces of ours, of torch's gloo and of MPI, on four ranks of this machine.

    python tests/bench/mpi.py [times]

A time is that of the slowest rank. Ours and gloo's take turns in one world; MPI's ranks
are other processes, so the two worlds take turns, three of each, against the noise of
the machine. "start" is what a call costs besides.
"""

import statistics
import sys
import time
from functools import partial

import numpy as np
import torch
import torch.distributed as dist

from distlab import collectives, run
from distlab.engines import mpi

RANKS = 4
COUNTS = [10, 4_000_000]  # of float32
NAMES = ["ring_all_reduce", "tree_all_reduce"]


def ours(comm, count, times):
    """Return, for each way and turn, this rank's seconds."""
    tensor = torch.ones(count)
    ways = [partial(getattr(collectives, name), comm, tensor) for name in NAMES]
    ways.append(partial(dist.all_reduce, tensor))
    return turns(ways, comm.barrier, times, lambda: tensor.fill_(1))


def theirs(world, count, times):
    """Return, for each turn of MPI's, this rank's seconds."""
    share, total = np.ones(count, np.float32), np.empty(count, np.float32)
    way = partial(world.Allreduce, share, total)
    taken = turns([way], world.Barrier, times, lambda: None)
    assert total[0] == total[-1] == world.size
    return taken


def turns(ways, barrier, times, prepare):
    """Time each way in turn; the first time makes connections and is dropped."""
    taken = [[] for _ in ways]
    for _ in range(times + 1):
        for way, each in zip(ways, taken, strict=True):
            prepare()
            barrier()
            began = time.perf_counter()
            way()
            each.append(time.perf_counter() - began)
    return [each[1:] for each in taken]


def main():
    """Print a table for each size."""
    times = int(sys.argv[1]) if sys.argv[1:] else 20
    starts = []
    for count in COUNTS:
        slowest = {name: [] for name in [*NAMES, "gloo", "MPI"]}
        for _ in range(3):
            by_rank = run(ours, RANKS, args=(count, times)).results
            began = time.perf_counter()
            by_mpi = mpi.run(theirs, RANKS, args=(count, times))
            starts.append(time.perf_counter() - began)
            both = [mine + its for mine, its in zip(by_rank, by_mpi, strict=True)]
            for name, *each in zip(slowest, *both, strict=True):
                slowest[name] += map(max, zip(*each, strict=True))
            starts[-1] -= sum(slowest["MPI"][-times:])
        print(f"\n{count:,} float32 on {RANKS} ranks, {3 * times} turns")
        print(f"{'':20}{'median':>12}{'best':>12}{'busbw':>14}")
        for name, taken in slowest.items():
            middle, best = statistics.median(taken), min(taken)
            busbw = 2 * (RANKS - 1) / RANKS * count * 4 / middle
            print(f"{name:20}{middle * 1e3:9.3f} ms{best * 1e3:9.3f} ms", end="")
            print(f"{busbw / 1e6:9.0f} MB/s")
    print(f"\nstart of MPI's four ranks: {statistics.median(starts):.2f} s")


if __name__ == "__main__":
    main()
