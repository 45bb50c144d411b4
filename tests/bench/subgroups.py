"""A collective in a subgroup beside the same in a world of as many ranks.

    python tests/bench/subgroups.py

The same four processes, once as a world and once as one group that `split` made, in
turn; and what the split itself and a mesh cost.
"""

import time
from statistics import median

import torch

from distlab import Mesh, run
from distlab.collectives import ring_all_reduce
from distlab.units import KiB, MiB

TIMES = 15


def both(comm, nbytes):
    group = comm.split(0, name="all")
    taken = {comm: [], group: []}
    x = torch.ones(nbytes // 4)
    for _ in range(TIMES):
        for each, seconds in taken.items():
            comm.barrier()
            start = time.perf_counter()
            for _ in range(5):
                ring_all_reduce(each, x)
                x.fill_(1.0)
            seconds.append((time.perf_counter() - start) / 5)
    return [median(seconds) for seconds in taken.values()]


def makes(comm):
    start = time.perf_counter()
    comm.split(comm.rank % 2)
    split_s = time.perf_counter() - start
    Mesh(comm, pp=2, dp=2, tp=2)
    return split_s, time.perf_counter() - start - split_s


def main():
    print(f"{'ring all-reduce':>16}{'world':>12}{'subgroup':>12}{'ratio':>8}")
    for nbytes in (4 * KiB, MiB, 16 * MiB):
        world, group = map(max, zip(*run(both, 4, args=(nbytes,)).results, strict=True))
        ratio = group / world
        print(
            f"{nbytes:>14} B{world * 1e3:>9.2f} ms{group * 1e3:>9.2f} ms{ratio:>8.2f}"
        )
    split_s, mesh_s = map(max, zip(*run(makes, 8).results, strict=True))
    print(f"8 ranks: split {split_s * 1e3:.0f} ms, mesh of three {mesh_s * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
