"""Merkle trees: the keys in which two replicas differ, without sending all of them.

    level 0              root                 one hash over everything
    level 1         h             h
    level 2      h     h       h     h        leaves: each a hash over some of the keys

A key belongs to the leaf that its own hash names, so both replicas put it into the same
one. Replicas compare hashes from the root down, and go on only below those that differ.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from distlab.errors import InvalidArgument

__all__ = ["MerkleTree", "TreeComparison", "children", "compare"]

_DEEPEST = 20


def _hash(*parts):
    return blake2b(repr(parts).encode(), digest_size=8).digest()


class MerkleTree:
    """A hash tree over a replica's keys and their states, with 2**depth leaves.

    items: key -> state. Equal keys and states must have an equal `repr`.
    leaves: for each leaf its items, sorted by key.

    Source: Merkle 1987; for replicas DeCandia et al. 2007, section 4.7.
    """

    def __init__(self, items: Mapping[Any, Any], depth: int = 8):
        if depth not in range(_DEEPEST + 1):
            raise InvalidArgument(
                f"depth={depth!r}: a tree has 0 to {_DEEPEST} levels below its root."
            )
        self.depth = depth
        self.leaves: list[dict[Any, Any]] = [{} for _ in range(2**depth)]
        for key in sorted(items, key=repr):
            leaf = int.from_bytes(_hash(key)) >> (64 - depth)
            self.leaves[leaf][key] = items[key]
        level = [_hash(*leaf.items()) for leaf in self.leaves]
        self._levels = [level]
        while len(level) > 1:
            level = [_hash(*pair) for pair in zip(level[::2], level[1::2], strict=True)]
            self._levels.insert(0, level)

    def hash(self, level: int, place: int) -> bytes:
        """Return the hash at a place of a level; (0, 0) is the root."""
        return self._levels[level][place]

    def hashes(self, level: int, places: Iterable[int]) -> tuple:
        """Return pairs (place, hash) of some places of a level, to be sent."""
        return tuple((place, self.hash(level, place)) for place in places)

    def differing(self, level: int, theirs: Iterable[tuple[int, bytes]]) -> list[int]:
        """Return the places whose hashes, received from the other, differ from here."""
        return [place for place, other in theirs if other != self.hash(level, place)]

    def items(self, leaves: Iterable[int]) -> tuple:
        """Return pairs (key, state) of some leaves."""
        return tuple(pair for leaf in leaves for pair in self.leaves[leaf].items())


def children(places: Iterable[int]) -> list[int]:
    """Return the places, one level down, of the children of some places."""
    return [child for place in places for child in (2 * place, 2 * place + 1)]


class TreeComparison(NamedTuple):
    """The difference of two replicas, and what it cost to find.

    keys: those whose states differ, or that one lacks. hashes: the hashes sent.
    messages: one after another, until the differing leaves were known. transferred:
    the items in these leaves, of both replicas, which are sent then.
    """

    keys: tuple
    hashes: int
    messages: int
    transferred: int


def compare(mine: MerkleTree, theirs: MerkleTree) -> TreeComparison:
    """Compare two replicas' trees level by level, as over the network, and count.

    Cost: with d keys that differ at most 1 + 2 d depth hashes, in depth + 1 messages;
    one hash if nothing differs.
    Raises: InvalidArgument if the trees differ in depth.
    """
    if mine.depth != theirs.depth:
        raise InvalidArgument(
            f"trees of depth {mine.depth} and {theirs.depth} have no leaves in common. "
            "Build both with the same depth."
        )
    level, hashes = 0, 1
    places = mine.differing(0, theirs.hashes(0, [0]))
    while places and level < mine.depth:
        level, below = level + 1, children(places)
        hashes += len(below)
        places = mine.differing(level, theirs.hashes(level, below))
    ours, others = dict(mine.items(places)), dict(theirs.items(places))
    lacks = object()
    keys = [k for k in ours | others if ours.get(k, lacks) != others.get(k, lacks)]
    transferred = len(ours) + len(others)
    return TreeComparison(tuple(sorted(keys, key=repr)), hashes, level + 1, transferred)
