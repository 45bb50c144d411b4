"""Costs of an all-reduce through one rank, a tree or a ring."""

from dataclasses import replace

from distlab.cost.model import Cost, checked, children, chunk_bytes, levels
from distlab.errors import InvalidArgument

__all__ = [
    "naive_all_reduce",
    "pipelined_ring_all_reduce",
    "ring_all_reduce",
    "tree_all_reduce",
]


def naive_all_reduce(world_size: int, tensor_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of gathering on rank 0 and sending back.

    T = 2(n-1) (alpha + S beta) + (n-1) S gamma
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    messages = (n - 1, *[1] * (n - 1))
    sent = tuple(count * size for count in messages)
    return Cost(2 * (n - 1), 2 * (n - 1) * size, (n - 1) * size, sent, messages)


def tree_all_reduce(world_size: int, tensor_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of a binomial tree up and down.

    T = ceil(log2 n) (2 alpha + 2 S beta + S gamma)

    Source: Thakur, Rabenseifner and Gropp (2005).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    messages = tuple((place > 0) + children(place, n) for place in range(n))
    sent = tuple(count * size for count in messages)
    return Cost(2 * levels(n), 2 * levels(n) * size, levels(n) * size, sent, messages)


def ring_all_reduce(world_size: int, tensor_bytes: int, *, itemsize: int = 1) -> Cost:
    """Return the cost of both phases of a ring.

    T = 2(n-1) alpha + 2(n-1)/n S beta + (n-1)/n S gamma

    Rank r leaves out chunk r + 1 in the first phase, and chunk r + 2 in the second.

    Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
        for clusters of workstations" (2009).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    chunks = chunk_bytes(size, n, itemsize)
    phase = (n - 1) * chunks[0]
    sent = tuple(2 * size - chunks[(r + 1) % n] - chunks[(r + 2) % n] for r in range(n))
    return Cost(2 * (n - 1), 2 * phase, phase, sent, (2 * (n - 1),) * n)


def pipelined_ring_all_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, pieces_per_chunk: int = 2
) -> Cost:
    """Return the cost of a ring whose chunks move in p pieces, one after another.

    T = 2(n-1) p alpha + 2(n-1)/n S beta     as long as adding is faster than moving

    Adding is not on the critical path: while one piece is added, the next one moves.

    Source: Patarasuk and Yuan (2009).
    """
    if type(pieces_per_chunk) is not int or pieces_per_chunk < 2:
        raise InvalidArgument(
            f"pieces_per_chunk is a whole number from 2 up: {pieces_per_chunk!r}."
        )
    plain = ring_all_reduce(world_size, tensor_bytes, itemsize=itemsize)
    return replace(
        plain,
        rounds=plain.rounds * pieces_per_chunk,
        added_bytes=0,
        messages=tuple(count * pieces_per_chunk for count in plain.messages),
    )
