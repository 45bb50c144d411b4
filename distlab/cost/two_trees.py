r"""Costs of an all-reduce over two trees, and the step in which each edge is used.

On the way down a rank of two trees has at most two edges that it sends along, those to
its children, and two that it receives along, one in each tree. One of both is used in
even steps and the other in odd ones, so that a rank sends one message in a step, and
receives one. An edge passes a chunk on in its first step after the chunk arrived. The
edges of six ranks with the step of the first chunk; each other follows 2 steps later:

    first tree         3                 second tree        2
                    0/   \1                              1/   \0
                    1     5                              0     4
                  2/ \1  /3                              3\  1/ \2
                  0   2 4                                  1 3   5

Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast,
reduction and scan" (2009), which proves that two colours, even and odd, are enough.
"""

import functools
from collections import defaultdict
from typing import NamedTuple

from distlab.cost.cost import Cost, check_count, checked, chunk_bytes

__all__ = ["double_tree_all_reduce"]


class Edge(NamedTuple):
    """A link from a parent to its child, in tree 0 or 1; `step`: that of chunk 0."""

    parent: int
    child: int
    tree: int
    step: int


def double_tree_all_reduce(
    world_size: int,
    tensor_bytes: int,
    *,
    itemsize: int = 1,
    chunks_per_half: int | None = None,
) -> Cost:
    """Return the cost of two trees, half of the tensor on each, in c chunks.

    T = 2 (d + 2(c-1)) (alpha + S/(2c) beta) + (d + 2(c-1)) S/(2c) gamma
    with d = floor(log2 n) + floor(log2 (n+1)) - 1 or one more

    d is the number of messages in sequence until a first chunk is at the last leaf.
    After that a chunk arrives in every second step, since a rank has two messages to
    receive for each, one in either tree. The way up is the way down in reverse. With
    growing c, T approaches 2 S beta, which a ring has at once; c chunks cost
    4 (c-1) alpha. With two ranks each edge is used in every step.

    chunks_per_half: c; if None, `default_chunks`.

    Source: Sanders, Speck and Träff (2009).
    """
    n, size = world_size, checked(world_size, tensor_bytes, itemsize)
    count = default_chunks(n, size) if chunks_per_half is None else chunks_per_half
    check_count("chunks_per_half", count)
    halves = chunk_bytes(size, 2, itemsize)
    sent, messages = [0] * n, [0] * n
    for edge in two_trees(n):
        for rank in (edge.parent, edge.child):
            sent[rank] += halves[edge.tree]
            messages[rank] += count
    steps = steps_of(n, count)
    one_way = steps * chunk_bytes(halves[0], count, itemsize)[0]
    return Cost(2 * steps, 2 * one_way, one_way, tuple(sent), tuple(messages))


def default_chunks(n: int, tensor_bytes: int) -> int:
    """Return the number of chunks of a half, for a link that is not known.

    T is least for c = sqrt((d-2)/4 S / (alpha/beta)). This takes 256 KiB for
    alpha/beta, the latency times the rate. With NVLink 4, which has 1.5 MB, T is at
    most 1.21 times what it could be, with 10-gigabit Ethernet, which has 25 kB, 1.39.
    """
    return max(1, round((max(0, steps_of(n, 1) - 2) * tensor_bytes / 2**20) ** 0.5))


def steps_of(n: int, count: int) -> int:
    """Return the number of steps of `count` chunks of each half, one way."""
    firsts = [edge.step + 1 for edge in two_trees(n)]
    return max(firsts) + stride(n) * (count - 1) if firsts else 0


def stride(n: int) -> int:
    """Return the number of steps between two chunks on an edge."""
    return 2 if n > 2 else 1


@functools.cache
def two_trees(n: int) -> tuple[Edge, ...]:
    """Return the edges of both trees, from the roots down.

    In the first tree rank r has label r + 1. Even labels have children, odd ones are
    leaves. In the second the labels count from the other end, or, if n is odd, are one
    less, so that even ones become odd; rank 0 then has label n, and is a leaf twice.
    """
    second = [n, *range(1, n)] if n % 2 else range(n, 0, -1)
    edges = []
    for tree, labels in enumerate((range(1, n + 1), second)):
        ranks = {label: rank for rank, label in enumerate(labels)}
        for label in sorted(ranks, key=lambda label: (-_height(label), label)):
            if parent := _parent(label, n):
                edges.append((ranks[parent], ranks[label], tree))
    colors, done = _colors(edges), {}
    for parent, child, tree in edges:
        color, above = colors[parent, child, tree], done.get((parent, tree))
        step = color if above is None else above.step + 1
        done[child, tree] = Edge(parent, child, tree, step + (step - color) % 2)
    return tuple(done.values())


def _colors(edges):
    """Return edge -> its color: 0 if it is used in even steps, 1 in odd ones.

    Edges of one sender, or of one receiver, differ. They form chains, which are
    traversed from the top edges, so that the roots begin in step 0.
    """
    sharing = defaultdict(list)
    for edge in edges:
        sharing["from", edge[0]].append(edge)
        sharing["to", edge[1]].append(edge)
    colors = {}
    for first in edges:
        chain = [(first, 0)]
        while chain:
            edge, color = chain.pop()
            if edge not in colors:
                colors[edge] = color
                others = sharing["from", edge[0]] + sharing["to", edge[1]]
                chain += [(other, 1 - color) for other in others]
    return colors


def _height(label):
    return label & -label


def _parent(label, n):
    """Return the label above this one in the tree of labels 1 to n; 0 above the root.

    The lowest bit of a label is its height. One level up that bit is cleared and the
    next one set; where this leads beyond n, the level after that is taken.
    """
    height = _height(label)
    while height <= n:
        label, height = label - height | 2 * height, 2 * height
        if label <= n:
            return label
    return 0
