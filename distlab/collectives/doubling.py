"""All-reduce in about log n rounds: exchange with partners 1, 2, 4 and so on away."""

from distlab.collectives.arguments import flat_view
from distlab.collectives.chunks import chunk_edges, room_like
from distlab.collectives.powers_of_two import Places, powers_below
from distlab.collectives.reductions import SUM

__all__ = ["halving_doubling_all_reduce", "recursive_doubling_all_reduce"]


def recursive_doubling_all_reduce(comm, tensor, *, op=SUM) -> None:
    """Swap whole tensors with a partner at distance 1, 2, 4 and so on; in place.

    Both add the other's tensor, so that each sum covers twice as many ranks as before.
    If n is no power of two, the extra ranks send their tensor to a host first, and
    receive the result last; see `powers_of_two`.

    Cost: log2 n rounds of S for a power of two, the fewest possible; else
        floor(log2 n) + 2.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    flat = flat_view(comm, tensor, op)
    places = Places(comm.rank, comm.world_size)
    if places.host is not None:
        comm.send(flat, places.host)
        comm.recv(flat, places.host)
        return
    arrived = room_like(flat)
    places.take_in(comm, flat, arrived, op)
    distances = powers_below(places.count)
    for step, distance in enumerate(distances, 1):
        comm.mark(f"all-reduce, step {step} of {len(distances)}")
        partner = places.rank_at(places.place ^ distance)
        op.combine(flat, comm.sendrecv(flat, arrived, dst=partner, src=partner))
    op.finish(flat, comm.world_size)
    places.tell(comm, flat)


def halving_doubling_all_reduce(
    comm, tensor, *, op=SUM, nearest_first: bool = True
) -> None:
    """Reduce-scatter by halving, then all-gather by doubling; in place.

    The bytes of a ring in the rounds of a tree: partners swap halves of the tensor,
    then quarters, until each has one chunk of the sum, and then in reverse order. If n
    is no power of two, the extra ranks send their tensor to a host first, and receive
    the result last; see `powers_of_two`.

    nearest_first: swap the halves with the rank beside, quarters with one 2 away and so
        on, which keeps the large messages near. Chunks are then owned in the order of
        bit-reversed ranks. False begins with the rank n/2 away; the cost is the same.

    Cost: 2 log2 n rounds, and every rank sends 2(n-1)/n S, the least possible, for a
        power of two; else 2 floor(log2 n) + 2 rounds, two of them with S.
    Source: Rabenseifner, "Optimization of collective reduction operations" (2004); the
        order is MPICH's, allreduce_intra_reduce_scatter_allgather.c.
    """
    flat = flat_view(comm, tensor, op)
    places = Places(comm.rank, comm.world_size)
    if places.host is not None:
        comm.send(flat, places.host)
        comm.recv(flat, places.host)
        return
    arrived = room_like(flat)
    places.take_in(comm, flat, arrived, op)
    edges = chunk_edges(len(flat), places.count)
    distances = powers_below(places.count)
    first, half, swaps = 0, places.count, []  # of the chunks that a pair shares
    for distance in distances if nearest_first else reversed(distances):
        half //= 2
        lower, upper = (
            flat[edges[start] : edges[start + half]] for start in (first, first + half)
        )
        partner = places.rank_at(places.place ^ distance)
        if places.place & distance:
            first += half
            lower, upper = upper, lower
        swaps.append((lower, upper, partner))
    for step, (mine, theirs, partner) in enumerate(swaps, 1):
        comm.mark(f"reduce-scatter, step {step} of {len(swaps)}")
        room = arrived[: len(mine)]
        op.combine(mine, comm.sendrecv(theirs, room, dst=partner, src=partner))
    op.finish(flat[edges[first] : edges[first + 1]], comm.world_size)
    for step, (mine, theirs, partner) in enumerate(reversed(swaps), 1):
        comm.mark(f"all-gather, step {step} of {len(swaps)}")
        comm.sendrecv(mine, theirs, dst=partner, src=partner)
    places.tell(comm, flat)
