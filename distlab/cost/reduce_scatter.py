"""Costs of a reduce-scatter; S is the whole tensor."""

from distlab.cost.cost import Cost, PairedRanks, checked, chunk_bytes, edges_of, levels

__all__ = [
    "bruck_reduce_scatter",
    "pairwise_reduce_scatter",
    "recursive_halving_reduce_scatter",
    "ring_reduce_scatter",
]


def bruck_reduce_scatter(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1
) -> Cost:
    """Return the cost of Bruck's all-gather in reverse.

    T = ceil(log2 n) alpha + (n-1)/n S beta + (n-1)/n S gamma       for any n

    Source: Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms"
        (2024).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    chunks = chunk_bytes(size, n, itemsize)
    edges = edges_of(chunks)
    chain = sum(edges[min(2**k, n - 2**k)] for k in range(levels(n)))
    sent = tuple(size - chunk for chunk in chunks)
    return Cost(levels(n), chain, chain, sent, (levels(n),) * n)


def pairwise_reduce_scatter(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1
) -> Cost:
    """Return the cost of sending every rank its chunk directly.

    T = (n-1) alpha + (n-1)/n S beta + (n-1)/n S gamma

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    chunks = chunk_bytes(size, n, itemsize)
    chain = (n - 1) * chunks[0]
    sent = tuple(size - chunk for chunk in chunks)
    return Cost(n - 1, chain, chain, sent, (n - 1,) * n)


def ring_reduce_scatter(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1
) -> Cost:
    """Return the cost of one adding phase on a ring, which is that of pairwise.

    T = (n-1) alpha + (n-1)/n S beta + (n-1)/n S gamma

    Source: Patarasuk and Yuan (2009).
    """
    return pairwise_reduce_scatter(world_size, tensor_bytes, itemsize=itemsize)


def recursive_halving_reduce_scatter(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1
) -> Cost:
    """Return the cost of swapping halves, quarters and so on.

    T = log2 n alpha + (n-1)/n S (beta + gamma)         for a power of two; else about
    T = (log2 p + 2) alpha + 2 S (beta + gamma)         with p the largest in n

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    pairs, chunks = PairedRanks(n), chunk_bytes(size, n, itemsize)
    edges = edges_of(chunks)

    def sent_from(place, has_folded):
        first, end = pairs.first(place), pairs.first(place + 1)
        to_folded_rank = chunks[first + 1] if has_folded else 0
        return size - (edges[end] - edges[first]) + to_folded_rank

    longest = sum(edges[pairs.first(d)] for d in pairs.distances)
    to_folded = chunks[1] if pairs.folds else 0
    return Cost(
        rounds=pairs.steps + 2 * pairs.folds,
        chain_bytes=longest + size * pairs.folds + to_folded,
        added_bytes=longest + size * pairs.folds,
        sent_bytes=pairs.by_rank(lambda rank: size, sent_from),
        messages=pairs.by_rank(lambda rank: 1, lambda _, folded: pairs.steps + folded),
    )
