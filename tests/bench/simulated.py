"""Simulated rings: seconds of one core, and memory, for more and more ranks.

The peer is the ring's own arithmetic: the same slices and additions on the same arrays,
one rank after another, with no message in between. Run: python tests/bench/simulated.py
"""

import resource
import time

import numpy as np

from distlab import run
from distlab.collectives import ring_all_reduce
from distlab.collectives.chunks import split
from distlab.links import Link
from distlab.simulated import Uniform

FABRIC = Uniform(Link(latency_s=1e-6, bytes_per_s=1e9))


def simulated(comm):
    array = np.full(comm.world_size, float(comm.rank), np.float32)
    ring_all_reduce(comm, array)
    return float(array[0])


def arithmetic(n):
    """Do what the ranks of a ring do to their arrays, without sending anything."""
    for rank in range(n):
        array = np.full(n, float(rank), np.float32)
        chunks, arrived = split(array, n), np.empty(1, np.float32)
        for step in range(n - 1):
            f"reduce-scatter, step {step + 1} of {n - 1}"
            room = arrived[: len(chunks[(rank - step - 1) % n])]
            room[...] = chunks[(rank - step) % n]
            chunks[(rank - step - 1) % n] += room
        for step in range(n - 1):
            f"all-gather, step {step + 1} of {n - 1}"
            chunks[(rank - step) % n][...] = chunks[(rank + 1 - step) % n]


def cpu_seconds(fn, *args):
    """Return the processor seconds that a call took, and what it returned."""
    began = time.process_time()
    result = fn(*args)
    return time.process_time() - began, result


def main():
    """Print the table."""
    heads = f"{'ranks':>6}{'messages':>11}{'s':>8}{'arithmetic, s':>15}"
    print(f"{heads}{'ratio':>7}{'MB':>7}")
    for n in (64, 256, 512, 1024):
        alone_s, _ = cpu_seconds(arithmetic, n)
        spent_s, report = cpu_seconds(lambda n=n: run(simulated, n, fabric=FABRIC))
        assert set(report.results) == {n * (n - 1) / 2}
        memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        row = f"{n:6}{2 * n * (n - 1):11,}{spent_s:8.2f}{alone_s:15.2f}"
        print(f"{row}{spent_s / alone_s:7.1f}{memory_mb:7.0f}")


if __name__ == "__main__":
    main()
