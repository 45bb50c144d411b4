r"""All-reduce over two trees at once, each with half of the tensor, in chunks.

Half of the ranks of a binary tree are leaves, which only send one message up and
receive one. So a second tree is used at the same time, in which they are inner ranks.
The ranks of a world of six:

    first tree         3                 second tree        2
                     /   \                                /   \
                    1     5                              0     4
                   / \   /                                \   / \
                  0   2 4                                  1 3   5

Each half is cut into chunks that are pipelined: while a rank passes one on, the next
one moves towards it. For any size of the tensor, a level of the tree waits for one
chunk only.

Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast,
reduction and scan" (2009).
"""

from distlab.collectives.arguments import check_at_least, flat_view
from distlab.collectives.chunks import room_like, split
from distlab.collectives.reductions import SUM
from distlab.cost.two_trees import default_chunks, steps_of, stride, two_trees

__all__ = ["double_tree_all_reduce"]


def double_tree_all_reduce(
    comm, tensor, *, op=SUM, chunks_per_half: int | None = None
) -> None:
    """Add up along two trees and send back, half of the tensor on each; in place.

    All chunks go up, then all come down. NCCL overlaps the two (runTreeSplit), which
    fills the trees sooner; each rank still sends up to 2 S. Its runTreeUpDown, in this
    order, is compiled only for CUDA 11.2 and 11.3. In a step a rank sends one message
    and receives one, in the same order of steps everywhere, so that no two ranks wait
    for each other.

    chunks_per_half: c; if None, a number that suits the tensor's size and n.

    Cost: 2 (d + 2(c-1)) rounds of S/(2c), with d about 2 log2 n; no rank sends more
        than 2 S.
    Source: Sanders, Speck and Träff (2009); NCCL, src/device/all_reduce.h.
    """
    flat, n = flat_view(comm, tensor, op), comm.world_size
    default = default_chunks(n, flat.nbytes)
    count = default if chunks_per_half is None else chunks_per_half
    check_at_least(1, comm, "chunks_per_half", count)
    halves = [split(half, count) for half in split(flat, 2)]
    to_child, from_parent = _messages_down(comm.rank, n, halves)
    active, steps = sorted(to_child | from_parent), steps_of(n, count)
    arrived, nothing = room_like(halves[0][0]), (None, None)
    for step in reversed(active):  # the way up is the way down backwards
        comm.mark(f"reduce on both trees, step {steps - step} of {steps}")
        chunk, child = to_child.get(step, nothing)
        room = arrived if chunk is None else arrived[: len(chunk)]
        _exchange(comm, *from_parent.get(step, nothing), room, child)
        if chunk is not None:
            op.combine(chunk, room)
    for step in active:
        comm.mark(f"broadcast on both trees, step {step + 1} of {steps}")
        _exchange(comm, *to_child.get(step, nothing), *from_parent.get(step, nothing))
    op.finish(flat, n)


def _messages_down(rank, n, halves):
    """Return step -> (chunk, child) and step -> (chunk, parent) of the broadcast."""
    to_child, from_parent = {}, {}
    for edge in two_trees(n):
        if rank in (edge.parent, edge.child):
            for number, chunk in enumerate(halves[edge.tree]):
                step = edge.step + stride(n) * number
                if rank == edge.parent:
                    to_child[step] = chunk, edge.child
                else:
                    from_parent[step] = chunk, edge.parent
    return to_child, from_parent


def _exchange(comm, outgoing, dst, incoming, src):
    """Send and receive at once, or only one of them if the other peer is None."""
    if dst is not None and src is not None:
        comm.sendrecv(outgoing, incoming, dst=dst, src=src)
    elif dst is not None:
        comm.send(outgoing, dst)
    else:
        comm.recv(incoming, src)
