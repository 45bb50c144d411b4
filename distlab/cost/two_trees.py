"""What an all-reduce over two trees costs."""

from distlab.cost.model import Cost, checked, chunk_bytes

__all__ = ["double_tree_all_reduce"]


def double_tree_all_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1
) -> Cost:
    """Return the cost of two trees at once, half of the tensor on each, in one piece.

    T = 2 d (alpha + S/2 beta) + d S/2 gamma
    with d = floor(log2 n) + floor(log2 (n+1)) - 1

    d is how many messages follow one another until a root has the sum of its half. A
    rank takes in two halves on each level, one after the other through its one port,
    that of the smaller subtree first. Below the root, label 2^k, the left subtree is
    full and has its sum after 2(k-1) messages. The right one, a tree of n - 2^k labels,
    is ready sooner, so that its message is hidden, unless it is full as well. So d is
    2k - 1, and 2k for n = 2^(k+1) - 1. What a rank sends as a leaf of the other tree is
    gone before it has something to hand up. The way down is the way up backwards. Where
    one half is longer, all of the chain is in its tree.

    So in one piece two trees are hardly faster than one, and what they gain is that no
    rank sends more than 2 S. Cut into pieces that follow each other, T approaches
    2 S beta.

    Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast,
        reduction and scan" (2009).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    halves = chunk_bytes(size, 2, itemsize)
    depth = n.bit_length() + (n + 1).bit_length() - 3
    sent, messages = [], []
    for rank in range(n):
        labels = rank + 1, n - rank if n % 2 == 0 else (rank - 1) % n + 1
        counts = [_messages(label, n) for label in labels]
        messages.append(sum(counts))
        sent.append(sum(c * half for c, half in zip(counts, halves, strict=True)))
    one_way = depth * halves[0]
    return Cost(2 * depth, 2 * one_way, one_way, tuple(sent), tuple(messages))


def _messages(label, n):
    """Return how many messages a label of a tree sends: one up, one to each child."""
    is_root = label == 2 ** (n.bit_length() - 1)
    below = 0 if label % 2 else 1 + (label < n)
    return (not is_root) + below
