"""All-gather: every rank has a tensor; afterwards every rank has a list of them all.

S is the bytes of the whole list, so that a rank contributes S/n.
"""

from distlab.collectives.arguments import flat_view, rooms_for
from distlab.collectives.powers_of_two import Places, powers_below

__all__ = ["bruck_all_gather", "recursive_doubling_all_gather", "ring_all_gather"]


def ring_all_gather(comm, tensor) -> list:
    """Pass the tensors around a ring; each rank keeps a copy of what it passes on.

    Returns: a list, of which index r is a copy of rank r's tensor.
    Cost: n-1 rounds; every rank sends (n-1)/n S, the least possible.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    flat_view(comm, tensor)
    n, rank = comm.world_size, comm.rank
    _, gathered = rooms_for(tensor, n)
    gathered[rank][...] = tensor
    for step in range(n - 1):
        comm.mark(f"all-gather, step {step + 1} of {n - 1}")
        outgoing, target = gathered[(rank - step) % n], gathered[(rank - step - 1) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
    return gathered


def recursive_doubling_all_gather(comm, tensor) -> list:
    """Exchange all tensors held so far with a partner at distance 1, 2, 4 and so on.

    A rank's tensors double with every step, and are always contiguous. If n is no power
    of two, the extra ranks send their tensor to a host first, and receive the whole
    list last; see `powers_of_two`.

    Returns: a list, of which index r is a copy of rank r's tensor.
    Cost: log2 n rounds, and every rank sends (n-1)/n S, for a power of two; else
        floor(log2 n) + 2 rounds, the last of them with S.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    flat = flat_view(comm, tensor)
    n, rank, size = comm.world_size, comm.rank, len(flat)
    places = Places(rank, n)
    whole, gathered = rooms_for(tensor, n)
    gathered[rank][...] = tensor
    if places.host is not None:
        comm.send(flat, places.host)
        comm.recv(whole, places.host)
        return gathered
    if places.folded is not None:
        comm.mark("take in the guests, step 1 of 1")
        comm.recv(gathered[places.folded], places.folded)

    def block(first, distance):
        start, end = places.rank_at(first), places.rank_at(first + distance)
        return whole[start * size : end * size]

    distances = powers_below(places.count)
    for step, distance in enumerate(distances, 1):
        comm.mark(f"all-gather, step {step} of {len(distances)}")
        first = places.place - places.place % distance
        partner = places.rank_at(places.place ^ distance)
        mine, theirs = block(first, distance), block(first ^ distance, distance)
        comm.sendrecv(mine, theirs, dst=partner, src=partner)
    if places.folded is not None:
        comm.mark("tell the guests, step 1 of 1")
        comm.send(whole, places.folded)
    return gathered


def bruck_all_gather(comm, tensor) -> list:
    """Fetch as many tensors as held from the ranks 1, 2, 4 and so on further; any n.

    A rank collects its own tensor first, then those of the ranks after it, in order, so
    that it always holds a prefix of its list; the last message has only the missing
    ones.

    Returns: a list, of which index r is a copy of rank r's tensor.
    Cost: ceil(log2 n) rounds; every rank sends (n-1)/n S: the least of both.
    Source: Bruck et al., "Efficient algorithms for all-to-all communications in
        multiport message-passing systems" (1997).
    """
    flat = flat_view(comm, tensor)
    n, rank, size = comm.world_size, comm.rank, len(flat)
    whole, collected = rooms_for(tensor, n)
    whole[:size] = flat
    distances = powers_below(n)
    for step, distance in enumerate(distances, 1):
        comm.mark(f"all-gather, step {step} of {len(distances)}")
        count = min(distance, n - distance)
        target = whole[distance * size : (distance + count) * size]
        behind, ahead = (rank - distance) % n, (rank + distance) % n
        comm.sendrecv(whole[: count * size], target, dst=behind, src=ahead)
    return [collected[(r - rank) % n] for r in range(n)]
