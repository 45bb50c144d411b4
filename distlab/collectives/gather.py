"""Gather: every rank has a tensor; afterwards the root has a list of all of them.

S is the bytes of the whole list, so that a rank contributes S/n.
"""

from distlab.collectives.arguments import check_root, flat_view, rooms_for
from distlab.collectives.powers_of_two import powers_below, subtree

__all__ = ["naive_gather", "tree_gather"]


def naive_gather(comm, tensor, *, root: int = 0) -> list | None:
    """Have the root receive one tensor after another.

    Returns: on the root a list, of which index r is a copy of rank r's tensor; None
        elsewhere.
    Cost: n-1 rounds; every rank but the root sends S/n.
    """
    check_root(comm, root)
    flat = flat_view(comm, tensor)
    if comm.rank != root:
        comm.send(flat, root)
        return None
    _, gathered = rooms_for(tensor, comm.world_size)
    gathered[root][...] = tensor
    others = [rank for rank in range(comm.world_size) if rank != root]
    for step, peer in enumerate(others, 1):
        comm.mark(f"gather, step {step} of {len(others)}")
        comm.recv(gathered[peer], peer)
    return gathered


def tree_gather(comm, tensor, *, root: int = 0) -> list | None:
    """Collect the tensors along a binomial tree, in messages that double in size.

    A place is a rank counted from the root. The tensors of a place and of its subtree
    are contiguous, so that they go up as one message.

    Returns: on the root a list, of which index r is a copy of rank r's tensor; None
        elsewhere.
    Cost: ceil(log2 n) rounds; the root receives (n-1)/n S, as it must.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    check_root(comm, root)
    flat = flat_view(comm, tensor)
    n, rank, size = comm.world_size, comm.rank, len(flat)
    place, distances = (rank - root) % n, powers_below(n)
    whole, gathered = rooms_for(tensor, subtree(place, n))
    whole[:size] = flat
    for step, distance in enumerate(distances, 1):
        comm.mark(f"gather, step {step} of {len(distances)}")
        if place % (2 * distance) == distance:
            comm.send(whole, (rank - distance) % n)
        elif place % (2 * distance) == 0 and place + distance < n:
            end = distance + subtree(place + distance, n)
            comm.recv(whole[distance * size : end * size], (rank + distance) % n)
    return [gathered[(r - root) % n] for r in range(n)] if rank == root else None
