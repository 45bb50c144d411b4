"""What recording costs: a ring step through `Comm` beside the bare process group.

python tests/bench/recording.py
"""

import statistics
import time

import torch
import torch.distributed as dist

from distlab import World
from distlab.units import MiB

RANKS = 4


def steps(comm, size_bytes, times):
    """Return the median seconds of a recorded and of a bare ring step, interleaved."""
    sent = torch.ones(size_bytes // 4)
    room = torch.zeros(size_bytes // 4)
    right, left = (comm.rank + 1) % RANKS, (comm.rank - 1) % RANKS
    group = dist.group.WORLD

    def recorded():
        comm.mark("step")
        comm.sendrecv(sent, room, dst=right, src=left)

    def bare():
        receiving = group.recv([room], left, 0)
        sending = group.send([sent], right, 0)
        receiving.wait()
        sending.wait()

    taken = {recorded: [], bare: []}
    for _ in range(times):
        for step in (recorded, bare):
            comm.barrier()
            began = time.perf_counter()
            for _ in range(5):
                step()
            taken[step].append((time.perf_counter() - began) / 5)
    return statistics.median(taken[recorded]), statistics.median(taken[bare])


def notes(comm, times):
    """Return the seconds that the notes of one ring step take, without the step."""
    tensor = torch.ones(10)
    sides = ((tensor, (comm.rank + 1) % RANKS), (tensor, (comm.rank - 1) % RANKS))
    began = time.perf_counter()
    for _ in range(times):
        with comm._waiting("sendrecv", **comm._offer_sides(*sides)):
            pass
    return (time.perf_counter() - began) / times


def main():
    """Print the table."""
    with World(RANKS) as world:
        print(f"{'ring step of':>14}{'recorded':>12}{'bare':>12}{'ratio':>8}")
        for size in (MiB // 1024, MiB, 4 * MiB):
            pairs = world.run(steps, size, 60).results
            recorded = statistics.median(pair[0] for pair in pairs)
            bare = statistics.median(pair[1] for pair in pairs)
            figures = f"{recorded * 1e6:9.0f} µs{bare * 1e6:9.0f} µs"
            print(f"{size // 1024:10} KiB{figures}{recorded / bare:8.3f}")
    with World(RANKS) as world:
        alone = statistics.median(world.run(notes, 2000).results)
        print(f"the notes of one step alone: {alone * 1e6:.1f} µs")


if __name__ == "__main__":
    main()
