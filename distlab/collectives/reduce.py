"""Reduce: every rank has a tensor; afterwards the root has the sum of them all."""

from distlab.collectives.arguments import check_root, flat_view
from distlab.collectives.chunks import copy_of, room_like
from distlab.collectives.powers_of_two import powers_below
from distlab.collectives.reductions import SUM

__all__ = ["naive_reduce", "tree_reduce"]


def naive_reduce(comm, tensor, *, root: int = 0, op=SUM) -> None:
    """Have the root receive and add one tensor after another; in place on the root.

    Cost: n-1 rounds; every rank but the root sends S, and all of it to the root.
    """
    check_root(comm, root)
    flat = flat_view(comm, tensor, op)
    if comm.rank != root:
        comm.send(flat, root)
        return
    arrived = room_like(flat)
    others = [rank for rank in range(comm.world_size) if rank != root]
    for step, peer in enumerate(others, 1):
        comm.mark(f"reduce, step {step} of {len(others)}")
        comm.recv(arrived, peer)
        op.combine(flat, arrived)
    op.finish(flat, comm.world_size)


def tree_reduce(comm, tensor, *, root: int = 0, op=SUM) -> None:
    """Add up in pairs along a binomial tree; in place on the root.

    In every step half of the ranks that are left send their partial sum to the others.
    An inner rank adds up in a copy, since its own tensor must not change.

    Cost: ceil(log2 n) rounds; every rank but the root sends S, the root adds
        ceil(log2 n) S.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    check_root(comm, root)
    flat = flat_view(comm, tensor, op)
    n, rank = comm.world_size, comm.rank
    place, distances = (rank - root) % n, powers_below(n)
    arrived = room_like(flat)
    only_sends = place % 2
    partial = flat if place == 0 or only_sends else copy_of(flat)
    for step, distance in enumerate(distances, 1):
        comm.mark(f"reduce, step {step} of {len(distances)}")
        if place % (2 * distance) == distance:
            comm.send(partial, (rank - distance) % n)
        elif place % (2 * distance) == 0 and place + distance < n:
            comm.recv(arrived, (rank + distance) % n)
            op.combine(partial, arrived)
    if rank == root:
        op.finish(flat, n)
