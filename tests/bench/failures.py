"""How soon a failed world says so: from the failure to the exception.

python tests/bench/failures.py
"""

import os
import signal
import statistics
import threading
import time

import torch

from distlab import CollectiveMismatch, Deadlock, RankDied, World, run

TIMES = 10


def killed_from_outside():
    """Return the seconds from SIGKILL of a busy rank to the exception."""
    world, sent = World(4), []

    def endless(comm):
        room = torch.zeros(1000)
        n = comm.world_size
        right, left = (comm.rank + 1) % n, (comm.rank - 1) % n
        while True:
            comm.sendrecv(torch.ones(1000), room, dst=right, src=left)

    victim = world.run(lambda comm: os.getpid()).results[2]

    def kill():
        sent.append(time.monotonic())
        os.kill(victim, signal.SIGKILL)

    threading.Timer(0.1, kill).start()
    try:
        world.run(endless)
    except RankDied as error:
        assert error.rank == 2
    taken = time.monotonic() - sent[0]
    world.close()
    return taken


def receive_cycle():
    """Return the seconds from the call, with the start of the ranks, to `Deadlock`."""
    began = time.monotonic()
    try:
        run(lambda comm: comm.recv(torch.zeros(1), (comm.rank - 1) % 4), 4)
    except Deadlock as error:
        assert len(error.cycle) == 4
    return time.monotonic() - began


def skipped_barrier():
    """Return the seconds from the call to `CollectiveMismatch`."""
    began = time.monotonic()
    try:
        run(lambda comm: comm.barrier() if comm.rank != 1 else None, 4)
    except CollectiveMismatch as error:
        assert error.rank == 1
    return time.monotonic() - began


def main():
    """Print the table."""
    run(lambda comm: None, 4)
    rows = [
        ("a busy rank killed by SIGKILL", killed_from_outside, 0.5),
        ("receive cycle of four, from the call", receive_cycle, 2.0),
        ("a skipped barrier, from the call", skipped_barrier, 2.0),
    ]
    print(f"{'until the exception':40}{'median s':>10}{'worst s':>10}{'target':>8}")
    for name, measure, target in rows:
        taken = [measure() for _ in range(TIMES)]
        median = statistics.median(taken)
        print(f"{name:40}{median:10.3f}{max(taken):10.3f}{target:8.1f}")


if __name__ == "__main__":
    main()
