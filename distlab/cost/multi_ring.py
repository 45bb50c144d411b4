"""Costs of an all-reduce on several rings, and of all-reduces on two kinds of link."""

from distlab.cost.all_gather import ring_all_gather
from distlab.cost.all_reduce import ring_all_reduce
from distlab.cost.cost import Cost, check_count, checked, chunk_bytes
from distlab.cost.reduce_scatter import ring_reduce_scatter
from distlab.errors import InvalidArgument

__all__ = [
    "hierarchical_all_reduce_s",
    "multi_ring_all_reduce",
    "multi_ring_all_reduce_s",
]


def multi_ring_all_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1, channels: int = 2
) -> Cost:
    """Return the cost of c rings at once, each with its part of the tensor.

    T = 2(n-1) alpha + 2(n-1)/n S beta + (n-1)/n S gamma
    if all rings share one link out of each rank, and their latencies overlap
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    check_count("channels", channels)
    sent, longest = [0] * n, 0
    for channel, part in enumerate(chunk_bytes(size, channels, itemsize)):
        chunks = chunk_bytes(part, n, itemsize)
        longest += chunks[0]
        for place, rank in enumerate(ring_order(n, channels, channel)):
            sent[rank] += 2 * part - chunks[(place + 1) % n] - chunks[(place + 2) % n]
    phase, messages = (n - 1) * longest, 2 * (n - 1) * channels
    return Cost(2 * (n - 1), 2 * phase, phase, tuple(sent), (messages,) * n)


def multi_ring_all_reduce_s(
    world_size: int,
    tensor_bytes: int,
    inside,
    outside,
    *,
    ranks_per_node,
    channels=1,
    pipelined=False,
) -> float:
    """Return the seconds of c rings over nodes of g ranks, each with a NIC of its own.

    T = 2(n-1) max(alpha' + k b beta', alpha + b beta)     with b = S / (c n)
    alpha', beta' inside a node, alpha, beta outside; k is c, and c - 1 for c = g

    inside, outside: the `Link` of each. One channel is the plain ring. Latencies of
    messages on one link overlap. Exact where c n divides S, else an upper bound.
    pipelined: a ring sends on what has arrived, and waits for no other ring, as NCCL's
        channels do. Latencies count along the way of one chunk, which leaves a node at
        most x = 2n/g times (NCCL estimates 2(n/g - 1), see `nccl_ring_latency_s`):
        T <= 2(n-1) b max(k beta', beta) + x alpha + (2(n-1) - x) alpha'

    Raises: InvalidArgument, also if channels do not divide ranks_per_node, or nodes are
        not full.
    """
    n, size = world_size, checked(world_size, tensor_bytes)
    g = _full_nodes(n, ranks_per_node)
    check_count("channels", channels)
    if ranks_per_node % channels:
        raise InvalidArgument(
            f"channels divides ranks_per_node={ranks_per_node}, and got {channels}: "
            "then each ring leaves a node through a NIC of its own."
        )
    chunk = chunk_bytes(chunk_bytes(size, channels, 1)[0], n, 1)[0]
    leaves = g < n
    hops, within = 2 * (n - 1), (channels - (leaves and channels == g)) * chunk
    by_link = [(outside, chunk)] if leaves else []
    by_link += [(inside, within)] if g > 1 else []
    if not pipelined:
        return hops * max((link.seconds(b) for link, b in by_link), default=0.0)
    out = min(2 * (n // g), hops) if leaves else 0
    moving_s = hops * max((b / link.bytes_per_s for link, b in by_link), default=0.0)
    return moving_s + out * outside.latency_s + (hops - out) * inside.latency_s


def hierarchical_all_reduce_s(
    world_size: int, tensor_bytes: int, inside, outside, *, ranks_per_node
) -> float:
    """Return the seconds of rings inside each node, and between nodes for each shard.

    T = 2(g-1) (alpha' + S/g beta') + 2(n/g-1) (alpha + S/n beta)

    inside, outside: the `Link` of each; every rank has a NIC of its own.

    Raises: InvalidArgument, also if nodes are not full.
    """
    n, size = world_size, checked(world_size, tensor_bytes)
    g = _full_nodes(n, ranks_per_node)
    shard = chunk_bytes(size, g, 1)[0]
    in_node = ring_reduce_scatter(g, size) + ring_all_gather(g, shard)
    between = ring_all_reduce(n // g, shard)
    return in_node.seconds(inside.latency_s, inside.bytes_per_s) + between.seconds(
        outside.latency_s, outside.bytes_per_s
    )


def ring_order(n: int, channels: int, channel: int) -> list[int]:
    """Return the ranks in the order of a channel's ring.

    Each `channels` consecutive ranks are passed from the channel's own one on, so that
    no two rings leave them at the same rank.
    """
    order = []
    for first in range(0, n, channels):
        node = range(first, min(first + channels, n))
        start = channel % len(node)
        order += [*node[start:], *node[:start]]
    return order


def _full_nodes(n, ranks_per_node):
    """Return the ranks of a node, at most n."""
    check_count("ranks_per_node", ranks_per_node)
    g = min(ranks_per_node, n)
    if n % g:
        raise InvalidArgument(
            f"{n} ranks do not fill nodes of {ranks_per_node}; "
            f"give a world_size that ranks_per_node divides."
        )
    return g
