"""All-to-all: every rank has a tensor for every rank, and gets one from every rank."""

import numpy as np

from distlab.collectives.arguments import (
    checked_lengths,
    flat_pieces,
    rooms_for,
    rooms_of,
)
from distlab.collectives.chunks import room_for
from distlab.collectives.powers_of_two import powers_below

__all__ = ["bruck_all_to_all", "exchange_lengths", "pairwise_all_to_all"]

_PAIRWISE_ADVICE = (
    " Tensors that differ in length along dim 0 need lengths=, on all ranks, since a "
    "rank does not know what the others send: exchange_lengths(comm, tensors) asks."
)
_BRUCK_ADVICE = (
    " Bruck's all-to-all packs tensors of several ranks into one message, of which the "
    "receiver knows the size only if all are equal; pairwise_all_to_all takes unequal "
    "ones."
)


def pairwise_all_to_all(comm, tensors: list, *, lengths: list[int] | None = None):
    """Exchange directly with the ranks at distance 1, 2, 3 and so on.

    tensors: index r goes to rank r; all of one shape and type, on all ranks. With
        lengths they may differ along dim 0, down to no rows at all (MPI_Alltoallv).
    lengths: the number of rows from each rank; all ranks give theirs, or none does.
        `exchange_lengths` gets them, where they are not known.
    Returns: a list, of which index r came from rank r.
    Cost: n-1 rounds; every rank sends n-1 of its tensors, the least possible. An empty
        tensor is a message, too.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    unequal = lengths is not None
    outgoing = flat_pieces(comm, tensors, unequal=unequal, advice=_PAIRWISE_ADVICE)
    n, rank = comm.world_size, comm.rank
    if unequal:
        lengths = checked_lengths(comm, lengths, len(tensors[rank]))
        arrived = rooms_of(tensors[0], lengths)
    else:
        _, arrived = rooms_for(tensors[0], n)
    arrived[rank][...] = tensors[rank]
    for step in range(1, n):
        comm.mark(f"all-to-all, step {step} of {n - 1}")
        ahead, behind = (rank + step) % n, (rank - step) % n
        comm.sendrecv(
            outgoing[ahead], arrived[behind].reshape(-1), dst=ahead, src=behind
        )
    return arrived


def exchange_lengths(comm, tensors: list) -> list[int]:
    """Return the number of rows, along dim 0, of each rank's tensor for this rank.

    Cost: n-1 rounds of 8 bytes, before the rows themselves.
    """
    flat_pieces(comm, tensors, unequal=True)
    counts = [_number_like(tensor, len(tensor)) for tensor in tensors]
    return [int(count) for count in pairwise_all_to_all(comm, counts)]


def _number_like(tensor, number):
    """Return an int64 number, as an array or as a tensor on the same device."""
    if isinstance(tensor, np.ndarray):
        return np.array(number, np.int64)
    count = tensor.new_empty(()).long()
    count[...] = number
    return count


def bruck_all_to_all(comm, tensors: list) -> list:
    """Send tensors through other ranks, packed into ceil(log2 n) messages.

    A tensor's distance is the number of ranks from its sender to its receiver. In step
    k all those whose distance has binary digit k move by 2**k, in one message. After
    the last digit all have arrived; each was sent once per digit 1.

    tensors: index r goes to rank r; all of one shape and type, on all ranks.
    Returns: a list, of which index r came from rank r.
    Cost: ceil(log2 n) rounds; every rank sends about n/2 of the tensors in each.
    Source: Bruck et al. (1997).
    """
    outgoing = flat_pieces(comm, tensors, advice=_BRUCK_ADVICE)
    n, rank, size = comm.world_size, comm.rank, len(outgoing[0])
    _, held = rooms_for(tensors[0], n)  # index: the distance of a tensor
    for way in range(n):
        held[way].reshape(-1)[...] = outgoing[(rank + way) % n]
    distances = powers_below(n)
    for step, distance in enumerate(distances, 1):
        comm.mark(f"all-to-all, step {step} of {len(distances)}")
        moving = [way for way in range(n) if way & distance]
        packed, room = (room_for(outgoing[0], len(moving) * size) for _ in range(2))
        for place, way in enumerate(moving):
            packed[place * size : (place + 1) * size] = held[way].reshape(-1)
        ahead, behind = (rank + distance) % n, (rank - distance) % n
        comm.sendrecv(packed, room, dst=ahead, src=behind)
        for place, way in enumerate(moving):
            held[way].reshape(-1)[...] = room[place * size : (place + 1) * size]
    return [held[(rank - r) % n] for r in range(n)]
