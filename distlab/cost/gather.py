"""Costs of a gather and a scatter, which are each other's reverse.

A rank sends or gets shard_bytes; S, in the formulas, is all of them, n times it.
"""

from distlab.cost.cost import (
    Cost,
    by_rank,
    checked,
    children,
    from_the_root,
    levels,
    subtree,
)

__all__ = ["naive_gather", "naive_scatter", "tree_gather", "tree_scatter"]


def naive_gather(
    world_size: int, shard_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of receiving one tensor after another at the root.

    T = (n-1) (alpha + S/n beta)
    """
    n, size = world_size, checked(world_size, shard_bytes, itemsize, root)
    messages = by_rank([0] + [1] * (n - 1), root)
    sent = tuple(count * size for count in messages)
    return Cost(n - 1, (n - 1) * size, 0, sent, messages)


def tree_gather(
    world_size: int, shard_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of collecting along a binomial tree.

    T = ceil(log2 n) alpha + (n-1)/n S beta

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, shard_bytes, itemsize, root)
    sent = [0] + [subtree(place, n) * size for place in range(1, n)]
    messages = by_rank([0] + [1] * (n - 1), root)
    return Cost(levels(n), (n - 1) * size, 0, by_rank(sent, root), messages)


def naive_scatter(
    world_size: int, shard_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of sending one piece after another from the root.

    T = (n-1) (alpha + S/n beta)
    """
    size = checked(world_size, shard_bytes, itemsize, root)
    return from_the_root(world_size, size, root)


def tree_scatter(
    world_size: int, shard_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of sending the pieces down a binomial tree.

    T = ceil(log2 n) alpha + (n-1)/n S beta

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, shard_bytes, itemsize, root)
    sent = by_rank([(subtree(place, n) - 1) * size for place in range(n)], root)
    messages = by_rank([children(place, n) for place in range(n)], root)
    return Cost(levels(n), (n - 1) * size, 0, sent, messages)
