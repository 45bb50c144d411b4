"""Costs of a reduce; S is the tensor."""

from distlab.cost.cost import Cost, by_rank, checked, levels

__all__ = ["naive_reduce", "tree_reduce"]


def naive_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of receiving and adding one tensor after another at the root.

    T = (n-1) (alpha + S beta + S gamma)
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize, root)
    return _every_rank_sends_once(n, size, root, n - 1)


def tree_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of a binomial tree to the root.

    T = ceil(log2 n) (alpha + S beta + S gamma)

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize, root)
    return _every_rank_sends_once(n, size, root, levels(n))


def _every_rank_sends_once(n, size, root, rounds):
    messages = by_rank([0] + [1] * (n - 1), root)
    sent = tuple(count * size for count in messages)
    return Cost(rounds, rounds * size, rounds * size, sent, messages)
