"""Costs of an all-reduce: by one rank, a tree, a ring, doubling, or nodes first."""

import math
from dataclasses import replace

from distlab.cost.cost import (
    Cost,
    PairedRanks,
    check_count,
    checked,
    children,
    chunk_bytes,
    edges_of,
    levels,
)
from distlab.errors import InvalidArgument

__all__ = [
    "halving_doubling_all_reduce",
    "hierarchical_all_reduce",
    "naive_all_reduce",
    "pipelined_ring_all_reduce",
    "recursive_doubling_all_reduce",
    "ring_all_reduce",
    "tree_all_reduce",
]


def naive_all_reduce(world_size: int, tensor_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of gathering on rank 0 and sending back.

    T = 2(n-1) (alpha + S beta) + (n-1) S gamma
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    messages = (n - 1, *[1] * (n - 1))
    sent = tuple(count * size for count in messages)
    return Cost(2 * (n - 1), 2 * (n - 1) * size, (n - 1) * size, sent, messages)


def tree_all_reduce(world_size: int, tensor_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of a binomial tree up and down.

    T = ceil(log2 n) (2 alpha + 2 S beta + S gamma)

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    messages = tuple((place > 0) + children(place, n) for place in range(n))
    sent = tuple(count * size for count in messages)
    return Cost(2 * levels(n), 2 * levels(n) * size, levels(n) * size, sent, messages)


def ring_all_reduce(world_size: int, tensor_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of both phases of a ring.

    T = 2(n-1) alpha + 2(n-1)/n S beta + (n-1)/n S gamma

    Rank r leaves out chunk r + 1 in the first phase, and chunk r + 2 in the second.

    Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
        for clusters of workstations" (2009).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    chunks = chunk_bytes(size, n, itemsize)
    phase = (n - 1) * chunks[0]
    sent = tuple(2 * size - chunks[(r + 1) % n] - chunks[(r + 2) % n] for r in range(n))
    return Cost(2 * (n - 1), 2 * phase, phase, sent, (2 * (n - 1),) * n)


def pipelined_ring_all_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, pieces_per_chunk: int = 2
) -> Cost:
    """Return the cost of a ring whose chunks move in p pieces, one after another.

    T = 2(n-1) p alpha + 2(n-1)/n S beta     as long as adding is faster than moving

    Adding is not on the critical path: while one piece is added, the next one moves.

    Source: Patarasuk and Yuan (2009).
    """
    if type(pieces_per_chunk) is not int or pieces_per_chunk < 2:
        raise InvalidArgument(
            f"pieces_per_chunk is a whole number from 2 up: {pieces_per_chunk!r}."
        )
    plain = ring_all_reduce(world_size, tensor_bytes, itemsize=itemsize)
    return replace(
        plain,
        rounds=plain.rounds * pieces_per_chunk,
        added_bytes=0,
        messages=tuple(count * pieces_per_chunk for count in plain.messages),
    )


def hierarchical_all_reduce(
    world_size: int, tensor_bytes: int, *, ranks_per_node: int, itemsize: int = 1
) -> Cost:
    """Return the cost of rings inside each node, and between nodes for each shard.

    T = (2(g-1) + 2(n/g-1)) alpha + 2(n-1)/n S beta + (n-1)/n S gamma
    with g ranks per node, or the greatest common divisor of g and n; all links alike

    The bytes are those of one ring, in fewer rounds.

    Source: Cho et al., "BlueConnect: decomposing all-reduce for deep learning on
        heterogeneous network hierarchy" (2019).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    check_count("ranks_per_node", ranks_per_node)
    g = math.gcd(min(ranks_per_node, n), n)
    nodes, parts = n // g, chunk_bytes(size, g, itemsize)
    chunks = [chunk_bytes(part, nodes, itemsize) for part in parts]
    inside, between = (g - 1) * parts[0], (nodes - 1) * chunks[0][0]
    sent = tuple(
        _sent(parts, rank % g) + _sent(chunks[rank % g], rank // g) for rank in range(n)
    )
    rounds = 2 * (g - 1) + 2 * (nodes - 1)
    chain = inside + between
    return Cost(rounds, 2 * chain, chain, sent, (rounds,) * n)


def _sent(chunks, k):
    """Return the bytes that the k-th of a ring sends: all chunks but one per phase."""
    return 2 * sum(chunks) - chunks[k] - chunks[(k + 1) % len(chunks)]


def recursive_doubling_all_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1
) -> Cost:
    """Return the cost of swapping whole tensors.

    T = log2 n (alpha + S beta + S gamma)       for a power of two; else, p the largest
    T = (log2 p + 2) (alpha + S beta) + (log2 p + 1) S gamma

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    pairs = PairedRanks(n)
    messages = pairs.by_rank(lambda rank: 1, lambda _, folded: pairs.steps + folded)
    rounds = pairs.steps + 2 * pairs.folds
    return Cost(
        rounds=rounds,
        chain_bytes=rounds * size,
        added_bytes=(pairs.steps + pairs.folds) * size,
        sent_bytes=tuple(count * size for count in messages),
        messages=messages,
    )


def halving_doubling_all_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, nearest_first: bool = True
) -> Cost:
    """Return the cost of a reduce-scatter by halving and an all-gather by doubling.

    T = 2 log2 n alpha + 2(n-1)/n S beta + (n-1)/n S gamma     for a power of two; else
    T = (2 log2 p + 2) alpha + (2(p-1)/p + 2) S beta + ((p-1)/p + 1) S gamma

    nearest_first: the order of partners; it matters only for the ranks that send the
        odd bytes of uneven chunks, and on links that differ.

    Source: Rabenseifner, "Optimization of collective reduction operations" (2004);
        Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    pairs = PairedRanks(n)
    edges = edges_of(chunk_bytes(size, pairs.places, itemsize))

    order = pairs.distances if nearest_first else pairs.distances[::-1]

    def sent_from(place, has_extra):
        total, first, shared = size * has_extra, 0, pairs.places
        for distance in order:  # both halves of a pair's chunks, there and back
            total += edges[first + shared] - edges[first]
            shared //= 2
            first += shared * bool(place & distance)
        return total

    longest = sum(edges[d] for d in pairs.distances)
    return Cost(
        rounds=2 * pairs.steps + 2 * pairs.folds,
        chain_bytes=2 * longest + 2 * size * pairs.folds,
        added_bytes=longest + size * pairs.folds,
        sent_bytes=pairs.by_rank(lambda rank: size, sent_from),
        messages=pairs.by_rank(lambda _: 1, lambda _, folded: 2 * pairs.steps + folded),
    )
