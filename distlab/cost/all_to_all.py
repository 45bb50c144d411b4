"""What an all-to-all costs; S is one of the n tensors in a rank's list."""

from distlab.cost.model import Cost, checked, levels

__all__ = ["bruck_all_to_all", "pairwise_all_to_all"]


def pairwise_all_to_all(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1
) -> Cost:
    """Return the cost of exchanging with one rank after another, straight.

    T = (n-1) (alpha + S beta)

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    total = (n - 1) * size
    return Cost(n - 1, total, 0, (total,) * n, (n - 1,) * n)


def bruck_all_to_all(world_size: int, tensor_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of sending by way of others, once for each binary digit 1.

    T = log2 n (alpha + n/2 S beta)         for a power of two; else, exactly,
    T = ceil(log2 n) alpha + (number of digits 1 in 0, 1, .. n-1, in binary) S beta

    Source: Bruck et al. (1997).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    total = sum(way.bit_count() for way in range(n)) * size
    return Cost(levels(n), total, 0, (total,) * n, (levels(n),) * n)
