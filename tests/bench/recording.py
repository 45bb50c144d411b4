"""What recording costs: a ring step with notes, without them, and on the bare group.

    python tests/bench/recording.py

All three in each round, on the same ranks, in turn from the front and from the back.
A ratio is the median over the rounds, each compared with itself, so that what else the
machine does meanwhile strikes all three; beside it the middle half of the rounds.
"silent" is the same `Comm` with a recorder that writes nothing; "bare" posts to torch's
process group with no `Comm` at all. "processor" is the time that the rank's own thread
computes: what recording costs whoever else is on the machine.
"""

import statistics
import time
from itertools import chain

import torch
import torch.distributed as dist

from distlab import World
from distlab.units import MiB

RANKS = 4
STEPS = 20
ROUNDS = 200


class Silent:
    """Takes notes and forgets them."""

    step = 0

    def offer(self, *note):
        return 0

    def fits(self, *note):
        return True

    def ignore(self, *note, **details):
        pass

    now = running = events = point = raise_flag = ignore


def steps(comm, size_bytes, rounds):
    """Return (seconds, processor seconds) of a step in each round, for each way."""
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
    taken = [[] for _ in ways]
    for number in range(rounds):
        for each in range(len(ways))[:: 1 if number % 2 else -1]:
            comm.barrier()
            step, comm.recorder = ways[each]
            began, computed = time.perf_counter(), time.thread_time()
            for _ in range(STEPS):
                step()
            ended, stopped = time.perf_counter(), time.thread_time()
            taken[each].append(((ended - began) / STEPS, (stopped - computed) / STEPS))
            comm.recorder = recorder
    return taken


def ratio(ways, over, under, clock):
    """Return the median of rounds' ratios, and the middle half of them, in words."""
    pairs = zip(ways[over], ways[under], strict=True)
    low, middle, high = statistics.quantiles([a[clock] / b[clock] for a, b in pairs])
    return f"{middle:8.3f} ({low:.2f}-{high:.2f})"


def main():
    """Print the table."""
    heads = "".join(f"{head:>12}" for head in ("recorded", "silent", "bare"))
    ratios = f"{'recorded/silent':>22}{'recorded/bare':>20}"
    print(f"{'ring step of':>14}{'':>11}{heads}{ratios}")
    for size in (MiB // 1024, MiB, 4 * MiB):
        with World(RANKS) as world:
            of_ranks = world.run(steps, size, ROUNDS).results
        ways = [[*chain(*of_way)] for of_way in zip(*of_ranks, strict=True)]
        for clock, name in enumerate(("clock", "processor")):
            medians = [statistics.median(each[clock] for each in way) for way in ways]
            figures = "".join(f"{each * 1e6:9.1f} µs" for each in medians)
            ratios = f"  {ratio(ways, 0, 1, clock)}{ratio(ways, 0, 2, clock)}"
            print(f"{size // 1024:10} KiB{name:>11}{figures}{ratios}", flush=True)


if __name__ == "__main__":
    main()
