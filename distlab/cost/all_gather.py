"""Costs of an all-gather; a rank contributes shard_bytes, and S is n times as much."""

from distlab.cost.cost import Cost, PairedRanks, checked, levels

__all__ = ["bruck_all_gather", "recursive_doubling_all_gather", "ring_all_gather"]


def ring_all_gather(world_size: int, shard_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of passing the tensors around a ring.

    T = (n-1) (alpha + S/n beta)

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, shard_bytes, itemsize)
    total = (n - 1) * size
    return Cost(n - 1, total, 0, (total,) * n, (n - 1,) * n)


def recursive_doubling_all_gather(
    world_size: int, shard_bytes: int, *, itemsize: int = 1
) -> Cost:
    """Return the cost of exchanging all tensors held so far, at doubling distances.

    T = log2 n alpha + (n-1)/n S beta       for a power of two; else, with p the largest
    T = (log2 p + 2) alpha + (n + p + sum of min(d, n-p) over d = 1, 2, .. p/2) S/n beta

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, shard_bytes, itemsize)
    pairs = PairedRanks(n)

    def sent_from(place, has_extra):
        blocks = n * has_extra
        for d in pairs.distances:
            first = place - place % d
            blocks += pairs.first(first + d) - pairs.first(first)
        return blocks * size

    longest = sum(pairs.first(d) for d in pairs.distances)
    return Cost(
        rounds=pairs.steps + 2 * pairs.folds,
        chain_bytes=(longest + (n + 1) * pairs.folds) * size,
        added_bytes=0,
        sent_bytes=pairs.by_rank(lambda rank: size, sent_from),
        messages=pairs.by_rank(lambda rank: 1, lambda _, folded: pairs.steps + folded),
    )


def bruck_all_gather(world_size: int, shard_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of fetching from 1, 2, 4 and so on further.

    T = ceil(log2 n) alpha + (n-1)/n S beta

    Source: Bruck et al., "Efficient algorithms for all-to-all communications in
        multiport message-passing systems" (1997).
    """
    n, size = world_size, checked(world_size, shard_bytes, itemsize)
    total = (n - 1) * size
    return Cost(levels(n), total, 0, (total,) * n, (levels(n),) * n)
