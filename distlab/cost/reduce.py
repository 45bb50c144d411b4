"""Costs of a reduce; S is the tensor."""

from distlab.cost.cost import Cost, by_rank, checked, chunk_bytes, levels, subtree
from distlab.cost.reduce_scatter import recursive_halving_reduce_scatter

__all__ = ["naive_reduce", "rabenseifner_reduce", "tree_reduce"]


def naive_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of receiving and adding one tensor after another at the root.

    T = (n-1) (alpha + S beta + S gamma)
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize, root)
    return _every_rank_sends_once(n, size, root, n - 1)


def rabenseifner_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, root: int = 0
) -> Cost:
    """Return the cost of a reduce-scatter by halving, and a binomial gather.

    T = 2 log2 n alpha + 2(n-1)/n S beta + (n-1)/n S gamma     for a power of two

    MPICH reduces long tensors so; `collectives` has the two parts.

    Source: Rabenseifner (2004); Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize, root)
    chunks = chunk_bytes(size, n, itemsize)
    held = [chunks[(root + place) % n] for place in range(n)]
    sent = [sum(held[p : p + subtree(p, n)]) for p in range(1, n)]
    messages = by_rank([0] + [1] * (n - 1), root)
    gather = Cost(levels(n), size - held[0], 0, by_rank([0, *sent], root), messages)
    return recursive_halving_reduce_scatter(n, size, itemsize=itemsize) + gather


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
