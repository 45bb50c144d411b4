"""All-reduce on several rings at once: one for each NIC of a node.

A single ring leaves each node through one NIC, whatever else the node has. With one
ring for each rank of a node, and a part of the tensor on each, all NICs work. In two
nodes of two ranks:

    channel 0   0 ─▶ 1 ══▶ 2 ─▶ 3 ══▶ 0        first half of the tensor
    channel 1   1 ─▶ 0 ══▶ 3 ─▶ 2 ══▶ 1        second half; ══▶ leaves the node

Every rank sends on all rings in each step, c - 1 times inside its node and once out of
it. NCCL calls such a ring a channel, and also prefers rings that stay on one rail.

Source: NCCL, src/graph/search.cc and src/graph/connect.cc.
"""

from distlab.collectives.arguments import check_at_least, flat_view
from distlab.collectives.chunks import room_like, split
from distlab.collectives.reductions import SUM
from distlab.cost.multi_ring import ring_order

__all__ = ["multi_ring_all_reduce"]


def multi_ring_all_reduce(comm, tensor, *, op=SUM, channels: int = 2) -> None:
    """Run one ring for each channel, all in the same steps; in place.

    channels: the number of rings, and of consecutive ranks that share a node; or a
        divisor of that. Each ring has its part of the tensor.

    Cost: 2(n-1) rounds; every rank sends 2(n-1)/n S, the least possible, in c messages
        a round. With c ranks to a node, each NIC carries 2(n-1)/n S/c.
    """
    flat, n = flat_view(comm, tensor, op), comm.world_size
    check_at_least(1, comm, "channels", channels)
    parts = enumerate(split(flat, channels))
    rings = [
        _place_in(ring_order(n, channels, k), comm.rank, part) for k, part in parts
    ]
    for step in range(2 * (n - 1)):
        adds = step < n - 1
        phase = "reduce-scatter" if adds else "all-gather"
        comm.mark(f"{phase}, step {step % (n - 1) + 1} of {n - 1}")
        moving = []
        for place, left, right, chunks, room in rings:
            target, outgoing = (chunks[(place - step - k) % n] for k in (1, 0))
            room = room[: len(target)] if adds else target
            request = comm.isendrecv(outgoing, room, dst=right, src=left)
            moving.append((target, request))
        for target, request in moving:
            arrived = request.wait()
            if adds:
                op.combine(target, arrived)
            if step == n - 2:
                op.finish(target, n)
    if n == 1:
        op.finish(flat, n)


def _place_in(order, rank, part):
    """Return a rank's place in a ring, its neighbours, the chunks, and room for one."""
    place, chunks = order.index(rank), split(part, len(order))
    right = order[(place + 1) % len(order)]
    return place, order[place - 1], right, chunks, room_like(chunks[0])
