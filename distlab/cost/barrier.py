"""Costs of a barrier, whose messages are empty."""

from distlab.cost.cost import Cost, checked, children, levels

__all__ = ["dissemination_barrier", "naive_barrier", "tree_barrier"]


def naive_barrier(world_size: int, tensor_bytes: int = 0, *, itemsize: int = 1) -> Cost:
    """Return the cost of reporting to rank 0, which releases one after another.

    T = 2(n-1) alpha
    """
    n = world_size
    checked(n, tensor_bytes, itemsize)
    return _empty(2 * (n - 1), (n - 1, *[1] * (n - 1)))


def tree_barrier(world_size: int, tensor_bytes: int = 0, *, itemsize: int = 1) -> Cost:
    """Return the cost of a binomial tree up and down.

    T = 2 ceil(log2 n) alpha
    """
    n = world_size
    checked(n, tensor_bytes, itemsize)
    messages = tuple((place > 0) + children(place, n) for place in range(n))
    return _empty(2 * levels(n), messages)


def dissemination_barrier(
    world_size: int, tensor_bytes: int = 0, *, itemsize: int = 1
) -> Cost:
    """Return the cost of notifying the ranks 1, 2, 4 and so on further.

    T = ceil(log2 n) alpha

    Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization"
        (1988).
    """
    n = world_size
    checked(n, tensor_bytes, itemsize)
    return _empty(levels(n), (levels(n),) * n)


def _empty(rounds, messages):
    return Cost(rounds, 0, 0, (0,) * len(messages), messages)
