"""All-reduce in a cluster: inside each node first, then between the nodes.

A node's ranks share fast links inside it, and one slow link out of it. Here a byte
leaves the node only after it has been added up inside:

    reduce-scatter in each node ─▶ all-reduce of each shard ─▶ all-gather in each node
    node 0  rank 0: shard 0         0 and 2: shard 0           all ranks: all shards
            rank 1: shard 1         1 and 3: shard 1
    node 1  rank 2: shard 0
            rank 3: shard 1

If the ranks do not fill the last node, each node is treated as several equal ones, as
large as possible, so that all ranks have the same load: with 8 ranks in a node and 20
in all, five nodes of 4. With 31 in all that makes nodes of one, a plain ring.
"""

import math

from distlab.collectives.arguments import check_at_least, flat_view
from distlab.collectives.chunks import room_like, split
from distlab.collectives.reductions import SUM

__all__ = ["hierarchical_all_reduce"]


def hierarchical_all_reduce(comm, tensor, *, ranks_per_node: int, op=SUM) -> None:
    """Use a ring inside each node, and one between the nodes for each shard; in place.

    ranks_per_node: g; ranks 0 to g - 1 are node 0, the next g node 1, and so on. If g
        does not divide n, the greatest common divisor of both takes its place.

    Cost: 2(g-1) + 2(n/g-1) rounds; every rank sends 2(n-1)/n S, of which only
        2(n/g-1)/n S leave its node.
    Source: Cho et al., "BlueConnect: decomposing all-reduce for deep learning on
        heterogeneous network hierarchy" (2019), with two levels.
    """
    flat = flat_view(comm, tensor, op)
    n, rank = comm.world_size, comm.rank
    check_at_least(1, comm, "ranks_per_node", ranks_per_node)
    g = math.gcd(min(ranks_per_node, n), n)
    place = rank % g
    node, peers = range(rank - place, rank - place + g), range(place, n, g)
    parts = split(flat, g)
    chunks = split(parts[place], len(peers))
    _reduce_scatter(comm, parts, node, op, "inside")
    _reduce_scatter(comm, chunks, peers, op, "between nodes")
    _all_gather(comm, chunks, peers, "between nodes")
    op.finish(parts[place], n)
    _all_gather(comm, parts, node, "inside")


def _reduce_scatter(comm, chunks, ranks, op, where):
    """Reduce-scatter on a ring of these ranks; the k-th ends with chunk k's sum."""
    n, k = len(ranks), ranks.index(comm.rank)
    right, left = ranks[(k + 1) % n], ranks[(k - 1) % n]
    arrived = room_like(chunks[0])  # the first chunk is the longest
    for step in range(n - 1):
        comm.mark(f"reduce-scatter {where}, step {step + 1} of {n - 1}")
        outgoing, target = chunks[(k - step - 1) % n], chunks[(k - step - 2) % n]
        room = arrived[: len(target)]
        op.combine(target, comm.sendrecv(outgoing, room, dst=right, src=left))


def _all_gather(comm, chunks, ranks, where):
    """All-gather on a ring of these ranks; the k-th begins with chunk k."""
    n, k = len(ranks), ranks.index(comm.rank)
    right, left = ranks[(k + 1) % n], ranks[(k - 1) % n]
    for step in range(n - 1):
        comm.mark(f"all-gather {where}, step {step + 1} of {n - 1}")
        outgoing, target = chunks[(k - step) % n], chunks[(k - step - 1) % n]
        comm.sendrecv(outgoing, target, dst=right, src=left)
