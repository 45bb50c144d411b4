"""Rings across a fabric: the wire that most hops share, and the time that it costs.

    ring_sharing(fabric, 64)            1 if each hop has its wires to itself
    ring_all_reduce_s(fabric, 64, 1e9)  what `run(..., fabric=fabric)` takes

All hops of a ring send at once, a chunk each, and the slowest sets the pace. A leaf
switch with fewer wires up than ports down is no loss for a ring in the order of the
leaves, which leaves each of them once; in a random order nearly all hops leave theirs.
"""

from collections import Counter
from collections.abc import Sequence

from distlab.cost import ring_all_reduce
from distlab.plan.cluster import GpuCluster
from distlab.simulated import Fabric, Rails

__all__ = ["rail_fabric", "ring_all_reduce_s", "ring_sharing"]


def rail_fabric(cluster: GpuCluster) -> Rails:
    """Return the cluster's fabric for the simulator."""
    return Rails(
        cluster.per_node,
        cluster.gpu.inside,
        cluster.outside,
        cluster.nodes_per_leaf,
        cluster.oversubscription,
    )


def ring_sharing(fabric: Fabric, ranks: int | Sequence[int]) -> int:
    """Return the hops of a ring that share the fullest wire, 1 at least.

    ranks: their number, or the ranks in the order of the ring.
    """
    return max(_shares(fabric, _order(ranks)))


def ring_all_reduce_s(
    fabric: Fabric, ranks: int | Sequence[int], tensor_bytes: int
) -> float:
    """Return the seconds of an all-reduce on a ring, T = 2(n-1) (alpha + k S/n beta).

    Of the slowest hop, with k hops on its fullest wire: exact if all hops share alike,
    else an upper bound, since hops with fewer on their wire are done before.
    """
    order = _order(ranks)
    plain = ring_all_reduce(len(order), tensor_bytes)
    chunk = plain.chain_bytes / plain.rounds
    hops = zip(_ways(fabric, order), _shares(fabric, order), strict=True)
    return plain.rounds * max(
        way.latency_s + k * chunk * way.seconds_per_byte for way, k in hops
    )


def _order(ranks):
    return list(range(ranks)) if isinstance(ranks, int) else list(ranks)


def _ways(fabric, order):
    return [
        fabric.way(src, dst)
        for src, dst in zip(order, order[1:] + order[:1], strict=True)
    ]


def _shares(fabric, order):
    """Return for each hop the number of hops on its fullest wire."""
    ways = _ways(fabric, order)
    used = Counter(wire for way in ways for wire, _ in way.shared)
    return [max((used[wire] for wire, _ in way.shared), default=1) for way in ways]
