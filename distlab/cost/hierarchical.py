"""What an all-reduce costs that works inside each node first."""

from distlab.cost.model import Cost, checked, chunk_bytes, edges_of
from distlab.errors import InvalidArgument

__all__ = ["hierarchical_all_reduce"]


def hierarchical_all_reduce(
    world_size: int, tensor_bytes: int, *, ranks_per_node: int, itemsize: int = 1
) -> Cost:
    """Return the cost of rings inside each node, and between nodes for each part.

    T = (2(g-1) + 2(n/g-1)) alpha + 2(n-1)/n S beta + (n-1)/n S gamma
    with g ranks per node, all links alike

    The bytes are those of one ring, in fewer rounds. If the last node has m < g ranks,
    the parts of a rank there go one after another, ceil(g/m) of them.

    Source: Cho et al., "BlueConnect: decomposing all-reduce for deep learning on
        heterogeneous network hierarchy" (2019).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    if type(ranks_per_node) is not int or ranks_per_node < 1:
        raise InvalidArgument(
            f"ranks_per_node is a number from 1 up: {ranks_per_node!r}"
        )
    g = min(ranks_per_node, n)
    parts, nodes = chunk_bytes(size, g, itemsize), -(-n // g)
    sent, messages = [], []
    for rank in range(n):
        here = min(g, n - rank // g * g)  # ranks in this rank's node
        inside, owned = _inside(parts, here, rank % g)
        between = sum(_between(parts[p], nodes, rank // g, itemsize) for p in owned)
        sent.append(inside + between)
        messages.append(2 * (here - 1) + len(owned) * 2 * (nodes - 1))
    last = n - (nodes - 1) * g
    turns = -(-g // last)
    lap = max(_longest_lap(parts, g), _longest_lap(parts, last))
    lap_between = turns * (nodes - 1) * chunk_bytes(parts[0], nodes, itemsize)[0]
    return Cost(
        rounds=2 * (g - 1) + turns * 2 * (nodes - 1),
        chain_bytes=2 * lap + 2 * lap_between,
        added_bytes=lap + lap_between,
        sent_bytes=tuple(sent),
        messages=tuple(messages),
    )


def _spans(parts, ranks):
    """Return which parts each rank of a node takes charge of."""
    g = len(parts)
    return [range(k * g // ranks, (k + 1) * g // ranks) for k in range(ranks)]


def _inside(parts, ranks, k):
    """Return what the k-th rank of a node sends inside, and which parts it has."""
    spans, edges = _spans(parts, ranks), edges_of(parts)
    mine, next_one = spans[k], spans[(k + 1) % ranks]
    left_out = [edges[span.stop] - edges[span.start] for span in (mine, next_one)]
    return 2 * sum(parts) - sum(left_out), mine


def _between(part, nodes, node, itemsize):
    """Return what the owner of a part in a node sends to the other nodes."""
    chunks = chunk_bytes(part, nodes, itemsize)
    return 2 * part - chunks[node] - chunks[(node + 1) % nodes]


def _longest_lap(parts, ranks):
    edges = edges_of(parts)
    return (ranks - 1) * max(
        edges[s.stop] - edges[s.start] for s in _spans(parts, ranks)
    )
