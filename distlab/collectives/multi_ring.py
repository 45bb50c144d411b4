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
    rings = [
        _Ring(comm, part, ring_order(n, channels, channel))
        for channel, part in enumerate(split(flat, channels))
    ]
    for step in range(2 * (n - 1)):
        phase = "reduce-scatter" if step < n - 1 else "all-gather"
        comm.mark(f"{phase}, step {step % (n - 1) + 1} of {n - 1}")
        moving = [ring.begin(comm, step) for ring in rings]
        for ring, messages in zip(rings, moving, strict=True):
            ring.end(op, step, *messages)
    if n == 1:
        op.finish(flat, n)


class _Ring:
    """One channel's ring, from the view of one rank."""

    def __init__(self, comm, part, order):
        self._n, self._place = len(order), order.index(comm.rank)
        self._right, self._left = (
            order[(self._place + side) % self._n] for side in (1, -1)
        )
        self._chunks = split(part, self._n)
        self._arrived = room_like(self._chunks[0])  # the first chunk is the longest

    def begin(self, comm, step):
        """Begin to receive and to send a step's chunks; return both requests."""
        target, room = self._target(step), self._arrived
        room = room[: len(target)] if step < self._n - 1 else target
        outgoing = self._chunks[(self._place - step) % self._n]
        return comm.irecv(room, self._left), comm.isend(outgoing, self._right)

    def end(self, op, step, arriving, going):
        """Wait for both; add what has arrived in the first phase."""
        arrived, target = arriving.wait(), self._target(step)
        going.wait()
        if step < self._n - 1:
            op.combine(target, arrived)
        if step == self._n - 2:
            op.finish(target, self._n)

    def _target(self, step):
        return self._chunks[(self._place - step - 1) % self._n]
