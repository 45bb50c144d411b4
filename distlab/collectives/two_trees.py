r"""All-reduce over two trees at once, each with half of the tensor.

Half of the ranks of a binary tree are leaves, which only ever send one message up and
receive one. So a second tree is laid over the first, in which they do the other work.
The ranks of a world of six:

    first tree         3                 second tree        2
                     /   \                                /   \
                    1     5                              0     4
                   / \   /                                \   / \
                  0   2 4                                  1 3   5

In the first tree rank r has label r + 1. Even labels have children, odd ones are
leaves. In the second the labels count from the other end, or, if n is odd, are one
less, so that what was even is odd; label n is then that of rank 0, a leaf twice.

Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast,
reduction and scan" (2009).
"""

from distlab.collectives.arguments import flat_view
from distlab.collectives.chunks import room_like, split
from distlab.collectives.reductions import SUM

__all__ = ["double_tree_all_reduce"]


def double_tree_all_reduce(comm, tensor, *, op=SUM) -> None:
    """Add up along two trees and send back, half of the tensor on each; in place.

    Both halves are under way together. NCCL's algorithm of this kind also cuts each
    half into pieces that follow one another down the tree, which this one does not.

    Cost: 2 floor(log2 n) rounds; no rank sends more than 2 S.
    Source: Sanders, Speck and Träff (2009).
    """
    flat, n = flat_view(comm, tensor, op), comm.world_size
    if n == 1:
        op.finish(flat, n)
        return
    # A rank has children in one of the trees at most: that one is called inner here.
    (half, (parent, children)), (leaf_half, (leaf_parent, _)) = sorted(
        zip(split(flat, 2), _families(comm.rank, n), strict=True),
        key=lambda tree: -len(tree[1][1]),
    )
    comm.mark("reduce on both trees, step 1 of 1")
    arriving = [comm.irecv(room_like(half), child) for child in children]
    going = [comm.isend(leaf_half, leaf_parent)]
    for request in arriving:
        op.combine(half, request.wait())
    if parent is not None:
        going.append(comm.isend(half, parent))
    for request in going:
        request.wait()
    comm.mark("broadcast on both trees, step 1 of 1")
    leaf_result = comm.irecv(leaf_half, leaf_parent)
    if parent is not None:
        comm.recv(half, parent)
    going = [comm.isend(half, child) for child in children]
    for request in [leaf_result, *going]:
        request.wait()
    op.finish(flat, n)


def _families(rank, n):
    """Return this rank's parent, or None, and its children, in each of both trees."""
    second = [n, *range(1, n)] if n % 2 else list(range(n, 0, -1))
    families = []
    for labels in (list(range(1, n + 1)), second):
        ranks = {label: owner for owner, label in enumerate(labels)}
        own = labels[rank]
        below = [ranks[label] for label in labels if _parent(label, n) == own]
        families.append((ranks.get(_parent(own, n)), below))
    return families


def _parent(label, n):
    """Return the label above this one in the tree of labels 1 to n; 0 above the root.

    The lowest bit of a label is its height. One level up that bit is cleared and the
    next one set; where this leads beyond n, the level after that is taken.
    """
    height = label & -label
    while height <= n:
        label, height = label - height | 2 * height, 2 * height
        if label <= n:
            return label
    return 0
