"""Barrier: no rank leaves before all have entered. Its messages are empty."""

import numpy as np

from distlab.collectives.powers_of_two import powers_below

__all__ = ["dissemination_barrier", "naive_barrier", "tree_barrier"]


def naive_barrier(comm) -> None:
    """Have every rank report to rank 0, which then releases one after another.

    Cost: 2(n-1) rounds, all of them at rank 0.
    """
    token = np.empty(0, np.uint8)
    if comm.rank != 0:
        comm.send(token, 0)
        comm.recv(token, 0)
        return
    for step in range(1, comm.world_size):
        comm.mark(f"gather, step {step} of {comm.world_size - 1}")
        comm.recv(token, step)
    for step in range(1, comm.world_size):
        comm.mark(f"release, step {step} of {comm.world_size - 1}")
        comm.send(token, step)


def tree_barrier(comm) -> None:
    """Report up a binomial tree to rank 0, and release down the same tree.

    Cost: 2 ceil(log2 n) rounds.
    """
    n, rank = comm.world_size, comm.rank
    token, distances = np.empty(0, np.uint8), powers_below(n)
    for step, distance in enumerate(distances, 1):
        comm.mark(f"gather, step {step} of {len(distances)}")
        if rank % (2 * distance) == distance:
            comm.send(token, rank - distance)
        elif rank % (2 * distance) == 0 and rank + distance < n:
            comm.recv(token, rank + distance)
    for step, distance in enumerate(reversed(distances), 1):
        comm.mark(f"release, step {step} of {len(distances)}")
        if rank % (2 * distance) == 0 and rank + distance < n:
            comm.send(token, rank + distance)
        elif rank % (2 * distance) == distance:
            comm.recv(token, rank - distance)


def dissemination_barrier(comm) -> None:
    """Notify the ranks 1, 2, 4 and so on further; no rank is special.

    After step k, counted from 1, a rank knows that the 2**k - 1 before it have entered.

    Cost: ceil(log2 n) rounds, the fewest possible; every rank sends one message in
        each.
    Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization"
        (1988).
    """
    n, rank = comm.world_size, comm.rank
    token, room = np.empty(0, np.uint8), np.empty(0, np.uint8)
    distances = powers_below(n)
    for step, distance in enumerate(distances, 1):
        comm.mark(f"barrier, step {step} of {len(distances)}")
        ahead, behind = (rank + distance) % n, (rank - distance) % n
        comm.sendrecv(token, room, dst=ahead, src=behind)
