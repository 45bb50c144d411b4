"""What an all-reduce over two trees costs."""

from distlab.cost.model import Cost, checked, chunk_bytes

__all__ = ["double_tree_all_reduce"]


def double_tree_all_reduce(
    world_size: int, tensor_bytes: int, *, itemsize: int = 1
) -> Cost:
    """Return the cost of two trees at once, half of the tensor on each, in one piece.

    T = 2k alpha + (2k - e) S beta + (k - e/2) S gamma
    with k = floor(log2 n), and e = 1 where n is a power of two, else 0

    On each level a rank takes two halves in, one after the other, since both come
    through its one port; the root of a power of two has one child only. So in one piece
    two trees are hardly faster than one, and what they gain is that no rank sends more
    than 2 S. Cut into pieces that follow each other, T approaches 2 S beta.

    Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast,
        reduction and scan" (2009).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    halves = chunk_bytes(size, 2, itemsize)
    height = n.bit_length() - 1
    sent, messages = [], []
    for rank in range(n):
        labels = rank + 1, n - rank if n % 2 == 0 else (rank - 1) % n + 1
        counts = [_messages(label, n) for label in labels]
        messages.append(sum(counts))
        sent.append(sum(c * half for c, half in zip(counts, halves, strict=True)))
    one_way = max(0, 2 * height - (n == 2**height)) * halves[0]
    return Cost(2 * height, 2 * one_way, one_way, tuple(sent), tuple(messages))


def _messages(label, n):
    """Return how many messages a label of a tree sends: one up, one to each child."""
    is_root = label == 2 ** (n.bit_length() - 1)
    below = 0 if label % 2 else 1 + (label < n)
    return (not is_root) + below
