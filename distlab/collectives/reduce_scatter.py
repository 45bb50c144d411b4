"""Reduce-scatter: every rank has a tensor; afterwards each has one chunk of the sum.

The chunks are those of `chunks.split`, and rank r gets chunk r. It works in place: the
result is a view into the given tensor. The other chunks are left undefined.
"""

import itertools

from distlab.collectives.arguments import flat_view
from distlab.collectives.chunks import chunk_edges, room_for, room_like, split
from distlab.collectives.powers_of_two import Places, powers_below
from distlab.collectives.reductions import SUM

__all__ = [
    "bruck_reduce_scatter",
    "pairwise_reduce_scatter",
    "recursive_halving_reduce_scatter",
    "ring_reduce_scatter",
]


def bruck_reduce_scatter(comm, tensor, *, op=SUM):
    """Send partial sums 4, 2 and 1 ranks on, the farthest first; any n.

    It is `bruck_all_gather` in reverse: the messages that a rank received there, it
    sends here, to be added. A rank holds its chunks in order from its own on, and adds
    to a prefix of them the partial sums of ranks before it. Only its own chunk changes.

    Returns: this rank's chunk of the result, a flat view into `tensor`.
    Cost: ceil(log2 n) rounds; every rank sends S less its own chunk: the least of both.
    Source: Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms"
        (2024), with the distances of Bruck et al. (1997).
    """
    flat, n, rank = flat_view(comm, tensor, op), comm.world_size, comm.rank
    chunks, own = split(flat, n), chunk_edges(len(flat), n)[rank]
    turned, arrived = room_like(flat), room_like(flat)
    turned[: len(flat) - own], turned[len(flat) - own :] = flat[own:], flat[:own]
    lengths = (len(chunk) for chunk in chunks[rank:] + chunks[:rank])
    edges = list(itertools.accumulate(lengths, initial=0))
    distances = powers_below(n)
    for step, distance in enumerate(reversed(distances), 1):
        comm.mark(f"reduce-scatter, step {step} of {len(distances)}")
        count = min(distance, n - distance)
        mine, room = turned[: edges[count]], arrived[: edges[count]]
        theirs = turned[edges[distance] : edges[distance + count]]
        ahead, behind = (rank + distance) % n, (rank - distance) % n
        op.combine(mine, comm.sendrecv(theirs, room, dst=ahead, src=behind))
    chunks[rank][...] = turned[: edges[1]]
    op.finish(chunks[rank], n)
    return chunks[rank]


def pairwise_reduce_scatter(comm, tensor, *, op=SUM):
    """Send every rank its chunk of this rank's tensor, one rank in each step.

    The order of adding is that of the ranks before this one. Only a rank's own chunk
    changes.

    Returns: this rank's chunk of the result, a flat view into `tensor`.
    Cost: n-1 rounds; every rank sends S less its own chunk, the least possible.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, rank = comm.world_size, comm.rank
    chunks = split(flat_view(comm, tensor, op), n)
    mine = chunks[rank]
    arrived = room_like(mine)
    for step in range(1, n):
        comm.mark(f"reduce-scatter, step {step} of {n - 1}")
        ahead, behind = (rank + step) % n, (rank - step) % n
        op.combine(mine, comm.sendrecv(chunks[ahead], arrived, dst=ahead, src=behind))
    op.finish(mine, n)
    return mine


def ring_reduce_scatter(comm, tensor, *, op=SUM):
    """Pass partial sums around a ring; each rank adds its own contribution.

    The sum of chunk r begins on rank r + 1 and ends, complete, on rank r.

    Returns: this rank's chunk of the result, a flat view into `tensor`.
    Cost: n-1 rounds; every rank sends S less its own chunk, the least possible.
    Source: Patarasuk and Yuan (2009).
    """
    n, rank = comm.world_size, comm.rank
    right, left = (rank + 1) % n, (rank - 1) % n
    chunks = split(flat_view(comm, tensor, op), n)
    arrived = room_like(chunks[0])  # the first chunk is the longest
    for step in range(n - 1):
        comm.mark(f"reduce-scatter, step {step + 1} of {n - 1}")
        outgoing, target = chunks[(rank - step - 1) % n], chunks[(rank - step - 2) % n]
        room = arrived[: len(target)]
        op.combine(target, comm.sendrecv(outgoing, room, dst=right, src=left))
    op.finish(chunks[rank], n)
    return chunks[rank]


def recursive_halving_reduce_scatter(comm, tensor, *, op=SUM):
    """Swap halves with a partner n/2 away, quarters with one n/4 away, and so on.

    Each rank keeps the half that contains its own chunk, and adds the partner's
    partial sum of it. If n is no power of two, the extra ranks send their tensor to a
    host first, and receive their chunk last; see `powers_of_two`.

    Returns: this rank's chunk of the result, a flat view into `tensor`.
    Cost: log2 n rounds, and every rank sends S less its own chunk, for a power of two;
        else floor(log2 n) + 2 rounds, the first of them with S.
    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    flat = flat_view(comm, tensor, op)
    n, rank = comm.world_size, comm.rank
    chunks, edges, places = split(flat, n), chunk_edges(len(flat), n), Places(rank, n)
    if places.host is not None:
        comm.send(flat, places.host)
        return comm.recv(chunks[rank], places.host)
    arrived = room_for(flat, len(flat))
    places.take_in(comm, flat, arrived, op)

    def span(first, distance):
        start, end = places.rank_at(first), places.rank_at(first + distance)
        return flat[edges[start] : edges[end]]

    distances = powers_below(places.count)
    for step, distance in enumerate(reversed(distances), 1):
        comm.mark(f"reduce-scatter, step {step} of {len(distances)}")
        first = places.place - places.place % distance
        partner = places.rank_at(places.place ^ distance)
        mine, theirs = span(first, distance), span(first ^ distance, distance)
        room = arrived[: len(mine)]
        op.combine(mine, comm.sendrecv(theirs, room, dst=partner, src=partner))
    op.finish(span(places.place, 1), n)
    if places.folded is not None:
        places.tell(comm, chunks[places.folded])
    return chunks[rank]
