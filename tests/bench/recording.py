"""What recording costs: a ring step with notes, without them, and on the bare group.

    python tests/bench/recording.py

All three in turn on the same ranks. "silent" is the same `Comm` with a recorder that
writes nothing; "bare" posts to torch's process group with no `Comm` at all.
"""

import statistics
import time

import torch
import torch.distributed as dist

from distlab import World
from distlab.units import MiB

RANKS = 4
STEPS = 5


class Silent:
    """Takes notes and forgets them."""

    step = 0

    def offer(self, *note):
        return 0

    def fits(self, *note):
        return True

    def ignore(self, *note, **details):
        pass

    now = running = event = point = raise_flag = ignore


def steps(comm, size_bytes, times):
    """Return the median seconds of a step: recorded, silent, bare."""
    sent = torch.ones(size_bytes // 4)
    room = torch.zeros(size_bytes // 4)
    right, left = (comm.rank + 1) % RANKS, (comm.rank - 1) % RANKS
    group, recorder, silent = dist.group.WORLD, comm.recorder, Silent()

    def through_comm():
        comm.mark("step")
        comm.sendrecv(sent, room, dst=right, src=left)

    def bare():
        receiving = group.recv([room], left, 0)
        sending = group.send([sent], right, 0)
        receiving.wait()
        sending.wait()

    ways = [(through_comm, recorder), (through_comm, silent), (bare, recorder)]
    taken = [[], [], []]
    for _ in range(times):
        for times_taken, (step, chosen) in zip(taken, ways, strict=True):
            comm.barrier()
            comm.recorder = chosen
            began = time.perf_counter()
            for _ in range(STEPS):
                step()
            times_taken.append((time.perf_counter() - began) / STEPS)
            comm.recorder = recorder
    return [statistics.median(each) for each in taken]


def main():
    """Print the table."""
    print(f"{'ring step of':>14}{'recorded':>12}{'silent':>12}{'bare':>12}", end="")
    print(f"{'recorded/silent':>17}{'recorded/bare':>15}")
    for size in (MiB // 1024, MiB, 4 * MiB):
        with World(RANKS) as world:
            found = world.run(steps, size, 100).results
        noted, silent, bare = (
            statistics.median(each) for each in zip(*found, strict=True)
        )
        figures = "".join(f"{each * 1e6:9.0f} µs" for each in (noted, silent, bare))
        print(f"{size // 1024:10} KiB{figures}", end="")
        print(f"{noted / silent:17.3f}{noted / bare:15.3f}")


if __name__ == "__main__":
    main()
