"""Costs of an all-reduce that reduces inside each node first."""

import math

from distlab.cost.model import Cost, checked, chunk_bytes
from distlab.errors import InvalidArgument

__all__ = ["hierarchical_all_reduce"]


def hierarchical_all_reduce(
    world_size: int, tensor_bytes: int, *, ranks_per_node: int, itemsize: int = 1
) -> Cost:
    """Return the cost of rings inside each node, and between nodes for each shard.

    T = (2(g-1) + 2(n/g-1)) alpha + 2(n-1)/n S beta + (n-1)/n S gamma
    with g ranks per node, or the greatest common divisor of g and n; all links alike

    The bytes are those of one ring, in fewer rounds.

    Source: Cho et al., "BlueConnect: decomposing all-reduce for deep learning on
        heterogeneous network hierarchy" (2019).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    if type(ranks_per_node) is not int or ranks_per_node < 1:
        raise InvalidArgument(
            f"ranks_per_node is a number from 1 up: {ranks_per_node!r}"
        )
    g = math.gcd(min(ranks_per_node, n), n)
    nodes, parts = n // g, chunk_bytes(size, g, itemsize)
    chunks = [chunk_bytes(part, nodes, itemsize) for part in parts]
    inside, between = (g - 1) * parts[0], (nodes - 1) * chunks[0][0]
    sent = tuple(
        _sent(parts, rank % g) + _sent(chunks[rank % g], rank // g) for rank in range(n)
    )
    rounds = 2 * (g - 1) + 2 * (nodes - 1)
    chain = inside + between
    return Cost(rounds, 2 * chain, chain, sent, (rounds,) * n)


def _sent(chunks, k):
    """Return the bytes that the k-th of a ring sends: all chunks but one per phase."""
    return 2 * sum(chunks) - chunks[k] - chunks[(k + 1) % len(chunks)]
