"""All-to-all: every rank has a tensor for every rank, and gets one from every rank."""

from distlab.collectives.arguments import flat_pieces, rooms_for
from distlab.collectives.chunks import room_for
from distlab.collectives.powers import powers_below

__all__ = ["bruck_all_to_all", "pairwise_all_to_all"]


def pairwise_all_to_all(comm, tensors: list) -> list:
    """Exchange with the ranks 1, 2, 3 and so on away, straight.

    tensors: index r goes to rank r; all of one shape and type, on all ranks.
    Returns: a list, of which index r came from rank r.
    Cost: n-1 rounds; every rank sends n-1 of its tensors, the least possible.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    outgoing = flat_pieces(comm, tensors)
    n, rank = comm.world_size, comm.rank
    _, arrived = rooms_for(tensors[0], n)
    arrived[rank][...] = tensors[rank]
    for step in range(1, n):
        comm.mark(f"all-to-all, step {step} of {n - 1}")
        ahead, behind = (rank + step) % n, (rank - step) % n
        comm.sendrecv(
            outgoing[ahead], arrived[behind].reshape(-1), dst=ahead, src=behind
        )
    return arrived


def bruck_all_to_all(comm, tensors: list) -> list:
    """Send tensors by way of others, in few messages: those with a way of 1, 2, 4, ...

    A tensor has a way to go, the number of ranks between its sender and its receiver.
    In step k all those move by 2**k whose way has that binary digit, in one message.
    After every digit has had its turn all have arrived; each was sent once per digit 1.

    tensors: index r goes to rank r; all of one shape and type, on all ranks.
    Returns: a list, of which index r came from rank r.
    Cost: ceil(log2 n) rounds; every rank sends about n/2 of the tensors in each.
    Source: Bruck et al. (1997).
    """
    outgoing = flat_pieces(comm, tensors)
    n, rank, size = comm.world_size, comm.rank, len(outgoing[0])
    _, held = rooms_for(tensors[0], n)  # index: the way that a tensor had to go
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
