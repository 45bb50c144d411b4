"""Costs of a broadcast; S is the tensor."""

from distlab.cost.cost import (
    Cost,
    by_rank,
    checked,
    children,
    chunk_bytes,
    edges_of,
    from_the_root,
    levels,
    subtree,
)

__all__ = ["naive_broadcast", "scatter_all_gather_broadcast", "tree_broadcast"]


def naive_broadcast(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of sending from the root to one rank after another.

    T = (n-1) (alpha + S beta)
    """
    size = checked(world_size, tensor_bytes, itemsize, root)
    return from_the_root(world_size, size, root)


def tree_broadcast(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of a binomial tree from the root.

    T = ceil(log2 n) (alpha + S beta)

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize, root)
    messages = by_rank([children(place, n) for place in range(n)], root)
    sent = tuple(count * size for count in messages)
    return Cost(levels(n), levels(n) * size, 0, sent, messages)


def scatter_all_gather_broadcast(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of a binomial scatter and a ring all-gather.

    T = (ceil(log2 n) + n-1) alpha + 2(n-1)/n S beta

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize, root)
    chunks = chunk_bytes(size, n, itemsize)
    edges = edges_of(chunks)
    scattered = [edges[p + subtree(p, n)] - edges[p + 1] for p in range(n)]
    passed_on = [size - chunks[(p + 1) % n] for p in range(n)]
    return Cost(
        rounds=levels(n) + n - 1,
        chain_bytes=size - chunks[0] + (n - 1) * chunks[0],
        added_bytes=0,
        sent_bytes=by_rank(
            [a + b for a, b in zip(scattered, passed_on, strict=True)], root
        ),
        messages=by_rank([children(p, n) + n - 1 for p in range(n)], root),
    )
