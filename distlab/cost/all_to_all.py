"""Costs of an all-to-all; S is all n tensors of a rank, of shard_bytes each."""

from distlab.cost.cost import Cost, checked, levels
from distlab.errors import InvalidArgument

__all__ = ["bruck_all_to_all", "pairwise_all_to_all"]


def pairwise_all_to_all(
    world_size: int, shard_bytes: int | list[list[int]], *, itemsize: int = 1
) -> Cost:
    """Return the cost of exchanging directly with one rank after another.

    T = (n-1) (alpha + S/n beta)            for equal tensors; else, with b_k the
    T = (n-1) alpha + sum of b_k beta       longest message of step k

    shard_bytes: of unequal tensors a list of rows, one for each rank: its bytes for
        rank 0, 1 and so on. `exchange_lengths` costs as much as tensors of 8 bytes.

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n = world_size
    if isinstance(shard_bytes, list | tuple):
        return _unequal(n, shard_bytes, itemsize)
    total = (n - 1) * checked(n, shard_bytes, itemsize)
    return Cost(n - 1, total, 0, (total,) * n, (n - 1,) * n)


def _unequal(n, rows, itemsize):
    checked(n, 0)
    if len(rows) != n or any(len(row) != n for row in rows):
        raise InvalidArgument(
            f"unequal tensors of {n} ranks are {n} rows of {n} numbers of bytes, and "
            f"got {rows!r}."
        )
    sizes = [[checked(n, size, itemsize) for size in row] for row in rows]
    chain = sum(max(sizes[r][(r + k) % n] for r in range(n)) for k in range(1, n))
    sent = tuple(sum(row) - row[rank] for rank, row in enumerate(sizes))
    return Cost(n - 1, chain, 0, sent, (n - 1,) * n)


def bruck_all_to_all(world_size: int, shard_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of sending through other ranks, once for each binary digit 1.

    T = log2 n (alpha + S/2 beta)           for a power of two; else, exactly,
    T = ceil(log2 n) alpha + (number of digits 1 in 0, 1, .. n-1, in binary) S/n beta

    Source: Bruck et al. (1997).
    """
    n, size = world_size, checked(world_size, shard_bytes, itemsize)
    total = sum(way.bit_count() for way in range(n)) * size
    return Cost(levels(n), total, 0, (total,) * n, (levels(n),) * n)
