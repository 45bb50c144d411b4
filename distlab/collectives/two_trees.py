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

    Both halves are under way together. The way down is the way up backwards, message by
    message. NCCL's algorithm of this kind also cuts each half into pieces that follow
    one another down the tree, which this one does not.

    Cost: 2 d rounds of S/2 with d = floor(log2 n) + floor(log2 (n+1)) - 1; no rank
        sends more than 2 S.
    Source: Sanders, Speck and Träff (2009).
    """
    flat, n = flat_view(comm, tensor, op), comm.world_size
    if n == 1:
        op.finish(flat, n)
        return
    # A rank has children in one of the trees at most. Rank 0 of an odd n has none, and
    # takes the first tree as the one to serve first: there it is the first child.
    (leaf_half, (leaf_parent, _)), (half, (parent, children)) = sorted(
        zip(split(flat, 2), _families(comm.rank, n), strict=True),
        key=lambda tree: len(tree[1][1]),
    )
    comm.mark("reduce on both trees, step 1 of 1")
    going, arrived = comm.isend(leaf_half, leaf_parent), room_like(half)
    for child in children:
        op.combine(half, comm.recv(arrived, child))
    going.wait()
    if parent is not None:
        comm.send(half, parent)
    comm.mark("broadcast on both trees, step 1 of 1")
    if parent is not None:
        comm.recv(half, parent)
    arriving = comm.irecv(leaf_half, leaf_parent)
    for child in reversed(children):
        comm.send(half, child)
    arriving.wait()
    op.finish(flat, n)


def _families(rank, n):
    """Return this rank's parent, or None, and its children, in each of both trees.

    The smaller child comes first, or else the left one: it has added up first.
    """
    second = [n, *range(1, n)] if n % 2 else list(range(n, 0, -1))
    families = []
    for labels in (list(range(1, n + 1)), second):
        ranks = {label: owner for owner, label in enumerate(labels)}
        own = labels[rank]
        below = [label for label in range(1, n + 1) if _parent(label, n) == own]
        below.sort(key=lambda label: _size(label, n))
        children = [ranks[label] for label in below]
        families.append((ranks.get(_parent(own, n)), children))
    return families


def _size(label, n):
    """Return how many labels the tree has from this one on, downwards."""
    height = label & -label
    return min(label + height - 1, n) - (label - height)


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
