"""Broadcast: one rank, the root, has a tensor; afterwards every rank has it."""

from distlab.collectives.arguments import check_root, flat_view
from distlab.collectives.chunks import chunk_edges, split
from distlab.collectives.powers_of_two import powers_below

__all__ = ["naive_broadcast", "scatter_all_gather_broadcast", "tree_broadcast"]


def naive_broadcast(comm, tensor, *, root: int = 0) -> None:
    """Send the root's tensor to one rank after another; in place.

    Cost: n-1 rounds; the root sends (n-1) S, the others nothing.
    """
    check_root(comm, root)
    flat = flat_view(comm, tensor)
    if comm.rank != root:
        comm.recv(flat, root)
        return
    others = [rank for rank in range(comm.world_size) if rank != root]
    for step, peer in enumerate(others, 1):
        comm.mark(f"send, step {step} of {len(others)}")
        comm.send(flat, peer)


def tree_broadcast(comm, tensor, *, root: int = 0) -> None:
    """Send the tensor down a binomial tree, by every rank that has it; in place.

    A place is a rank counted from the root. In the first step the root sends across
    half of the ranks, in the next both send across a quarter, and so on.

    Cost: ceil(log2 n) rounds, in each of which the root sends S.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    check_root(comm, root)
    flat = flat_view(comm, tensor)
    n, rank = comm.world_size, comm.rank
    place, distances = (rank - root) % n, powers_below(n)
    for step, distance in enumerate(reversed(distances), 1):
        comm.mark(f"broadcast, step {step} of {len(distances)}")
        if place % (2 * distance) == 0 and place + distance < n:
            comm.send(flat, (rank + distance) % n)
        elif place % (2 * distance) == distance:
            comm.recv(flat, (rank - distance) % n)


def scatter_all_gather_broadcast(comm, tensor, *, root: int = 0) -> None:
    """Scatter the tensor in chunks along a tree, then gather it on a ring; in place.

    The root sends each chunk only once, half of them at first; then every rank has one
    chunk, and n - 1 steps around the ring bring it the others.

    Cost: ceil(log2 n) + n-1 rounds; the root sends 2(n-1)/n S, and no chain is longer.
    Source: Barnett et al., "Interprocessor collective communication library" (1994);
        Thakur, Rabenseifner and Gropp (2005), who name van de Geijn.
    """
    check_root(comm, root)
    flat = flat_view(comm, tensor)
    n, rank = comm.world_size, comm.rank
    place, distances = (rank - root) % n, powers_below(n)
    chunks, edges = split(flat, n), chunk_edges(len(flat), n)
    for step, distance in enumerate(reversed(distances), 1):
        comm.mark(f"scatter, step {step} of {len(distances)}")
        if place % (2 * distance) == 0 and place + distance < n:
            end = min(place + 2 * distance, n)
            span = flat[edges[place + distance] : edges[end]]
            comm.send(span, (rank + distance) % n)
        elif place % (2 * distance) == distance:
            span = flat[edges[place] : edges[min(place + distance, n)]]
            comm.recv(span, (rank - distance) % n)
    for step in range(n - 1):
        comm.mark(f"all-gather, step {step + 1} of {n - 1}")
        outgoing, target = chunks[(place - step) % n], chunks[(place - step - 1) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
