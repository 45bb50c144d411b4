"""Costs of an all-reduce between partners at distance 1, 2, 4 and so on."""

from distlab.cost.model import Cost, PairedRanks, checked, chunk_bytes, edges_of

__all__ = ["halving_doubling_all_reduce", "recursive_doubling_all_reduce"]


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
    world_size: int,
    tensor_bytes: int,
    *,
    itemsize: int = 1,
    nearest_first: bool = True,
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
