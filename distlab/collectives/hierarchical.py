"""All-reduce in a cluster: inside each node first, then between the nodes.

A node's ranks share fast links, and all of them one slow way out. Here a byte goes out
only after it has been added up inside:

    reduce-scatter in each node ─▶ all-reduce of each part ─▶ all-gather in each node
    node 0  rank 0: part 0          0 and 2: part 0            everybody: all parts
            rank 1: part 1          1 and 3: part 1
    node 1  rank 2: part 0
            rank 3: part 1

If the ranks do not fill the last node, each of those it has takes charge of several
parts, next to each other, and all-reduces them one after another.
"""

import itertools

from distlab.collectives.arguments import check_at_least, flat_view
from distlab.collectives.chunks import chunk_edges, room_like, split
from distlab.collectives.reductions import SUM

__all__ = ["hierarchical_all_reduce"]


def hierarchical_all_reduce(comm, tensor, *, ranks_per_node: int, op=SUM) -> None:
    """Use a ring inside each node, and one between the nodes for each part; in place.

    ranks_per_node: g; ranks 0 to g - 1 are node 0, the next g node 1, and so on. The
        tensor has g parts, and the last node may have fewer ranks.

    Cost: 2(g-1) + 2(n/g-1) rounds; every rank sends 2(n-1)/n S, of which only
        2(n/g-1)/n S leave its node. Both as long as every node is full.
    Source: Cho et al., "BlueConnect: decomposing all-reduce for deep learning on
        heterogeneous network hierarchy" (2019), with two levels.
    """
    flat = flat_view(comm, tensor, op)
    n, rank = comm.world_size, comm.rank
    check_at_least(1, comm, "ranks_per_node", ranks_per_node)
    parts = min(ranks_per_node, n)
    edges = chunk_edges(len(flat), parts)
    nodes = [range(s, min(s + parts, n)) for s in range(0, n, parts)]
    mine = nodes[rank // parts]
    firsts = [k * parts // len(mine) for k in range(len(mine) + 1)]
    spans = [flat[edges[a] : edges[b]] for a, b in itertools.pairwise(firsts)]
    _reduce_scatter(comm, spans, mine, op, "inside")
    for part in range(firsts[rank - mine[0]], firsts[rank - mine[0] + 1]):
        owners = [node[((part + 1) * len(node) - 1) // parts] for node in nodes]
        chunks = split(flat[edges[part] : edges[part + 1]], len(owners))
        _reduce_scatter(comm, chunks, owners, op, "between nodes")
        _all_gather(comm, chunks, owners, "between nodes")
    op.finish(spans[rank - mine[0]], n)
    _all_gather(comm, spans, mine, "inside")


def _reduce_scatter(comm, chunks, ranks, op, where):
    """Go once around a ring of these ranks; the k-th ends with chunk k added up."""
    n, k = len(ranks), ranks.index(comm.rank)
    right, left = ranks[(k + 1) % n], ranks[(k - 1) % n]
    arrived = room_like(max(chunks, key=len))
    for step in range(n - 1):
        comm.mark(f"reduce-scatter {where}, step {step + 1} of {n - 1}")
        outgoing, target = chunks[(k - step - 1) % n], chunks[(k - step - 2) % n]
        room = arrived[: len(target)]
        op.combine(target, comm.sendrecv(outgoing, room, dst=right, src=left))


def _all_gather(comm, chunks, ranks, where):
    """Go once around a ring of these ranks; the k-th begins with chunk k."""
    n, k = len(ranks), ranks.index(comm.rank)
    right, left = ranks[(k + 1) % n], ranks[(k - 1) % n]
    for step in range(n - 1):
        comm.mark(f"all-gather {where}, step {step + 1} of {n - 1}")
        outgoing, target = chunks[(k - step) % n], chunks[(k - step - 1) % n]
        comm.sendrecv(outgoing, target, dst=right, src=left)
