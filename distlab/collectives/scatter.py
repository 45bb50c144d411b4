"""Scatter: the root has a tensor for every rank; afterwards each rank has its own.

S is the bytes of all of the root's tensors, so that a rank gets S/n.
"""

from distlab.collectives.arguments import check_root, flat_pieces, flat_view
from distlab.collectives.chunks import room_for
from distlab.collectives.powers_of_two import powers_below, subtree
from distlab.errors import InvalidArgument

__all__ = ["naive_scatter", "tree_scatter"]


def naive_scatter(comm, tensor, pieces=None, *, root: int = 0) -> None:
    """Send every rank its piece, one after another, into its `tensor`.

    pieces: on the root a list of n tensors like `tensor`; ignored elsewhere.
    Cost: n-1 rounds; the root sends (n-1)/n S.
    """
    check_root(comm, root)
    flat = flat_view(comm, tensor)
    if comm.rank != root:
        comm.recv(flat, root)
        return
    pieces = _pieces_like(comm, tensor, pieces)
    others = [rank for rank in range(comm.world_size) if rank != root]
    for step, peer in enumerate(others, 1):
        comm.mark(f"scatter, step {step} of {len(others)}")
        comm.send(pieces[peer], peer)
    flat[...] = pieces[root]


def tree_scatter(comm, tensor, pieces=None, *, root: int = 0) -> None:
    """Send the pieces down a binomial tree, half of those left in every message.

    It is `tree_gather` in reverse. A place is a rank counted from the root, and the
    pieces of a place and of its subtree are sent as one message.

    pieces: on the root a list of n tensors like `tensor`; ignored elsewhere.
    Cost: ceil(log2 n) rounds; the root sends (n-1)/n S, as it must.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    check_root(comm, root)
    flat = flat_view(comm, tensor)
    n, rank, size = comm.world_size, comm.rank, len(flat)
    place, distances = (rank - root) % n, powers_below(n)
    whole = flat if place % 2 else room_for(flat, subtree(place, n) * size)
    if rank == root:
        for peer, piece in enumerate(_pieces_like(comm, tensor, pieces)):
            start = (peer - root) % n * size
            whole[start : start + size] = piece
    for step, distance in enumerate(reversed(distances), 1):
        comm.mark(f"scatter, step {step} of {len(distances)}")
        if place % (2 * distance) == 0 and place + distance < n:
            end = distance + subtree(place + distance, n)
            comm.send(whole[distance * size : end * size], (rank + distance) % n)
        elif place % (2 * distance) == distance:
            comm.recv(whole, (rank - distance) % n)
    flat[...] = whole[:size]


def _pieces_like(comm, tensor, pieces):
    """Return the root's pieces, flat, if each of them fits into its tensor."""
    flat = flat_pieces(comm, pieces)
    wanted, given = (
        (str(each.dtype), tuple(each.shape)) for each in (tensor, pieces[0])
    )
    if type(tensor) is not type(pieces[0]) or wanted != given:
        raise InvalidArgument(
            f"rank {comm.rank}: the pieces are {given[0]} {list(given[1])}, and the "
            f"tensor to fill is {wanted[0]} {list(wanted[1])}."
        )
    return flat
