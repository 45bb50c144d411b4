"""Merkle trees: the keys in which two replicas differ, without sending all of them.

    level 0              root                 one hash over everything
    level 1         h             h
    level 2      h     h       h     h        leaves: each a hash over some of the keys

A key belongs to the leaf that its own hash names, so both replicas put it into the same
one. Replicas compare hashes from the root down, and go on only below those that differ.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from distlab.errors import InvalidArgument

__all__ = ["Comparison", "MerkleTree", "children", "compare"]

_DEEPEST = 20
_HASH_BYTES = 8


def _hash(*parts):
    return blake2b(repr(parts).encode(), digest_size=_HASH_BYTES).digest()


class MerkleTree:
    """A hash tree over a replica's keys and their states, with 2**depth leaves.

    items: key -> state. Equal keys and states must have an equal `repr`.
    leaves: for each leaf its items, sorted by key.

    Invariant: two hashes at the same place are equal exactly if the items below are, up
    to a collision of 64-bit hashes.
    Source: Merkle 1987; DeCandia et al. 2007, section 4.7.
    """

    def __init__(self, items: Mapping[Any, Any], depth: int = 8):
        if not isinstance(depth, int) or not 0 <= depth <= _DEEPEST:
            raise InvalidArgument(
                f"depth={depth!r}: a tree has 0 to {_DEEPEST} levels below its root."
            )
        self.depth = depth
        self.leaves: list[dict[Any, Any]] = [{} for _ in range(2**depth)]
        for key in sorted(items, key=repr):
            self.leaves[self.leaf_of(key)][key] = items[key]
        level = [_hash(*leaf.items()) for leaf in self.leaves]
        self._levels = [level]
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=True)
            level = [_hash(left, right) for left, right in pairs]
            self._levels.insert(0, level)

    def leaf_of(self, key: Any) -> int:
        """Return the leaf that a key belongs to."""
        return int.from_bytes(_hash(key)) >> (8 * _HASH_BYTES - self.depth)

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


@dataclass(frozen=True)
class Comparison:
    """The keys in which two replicas differ, and the cost of their search.

    leaves: the leaves that differ. keys: those whose states differ, or that one lacks.
    hashes: the hashes sent. rounds: messages, one after another, until the leaves were
    known. transferred: the items of differing leaves, of both replicas, that are sent.
    """

    leaves: tuple[int, ...]
    keys: tuple
    hashes: int
    rounds: int
    transferred: int


def compare(mine: MerkleTree, theirs: MerkleTree) -> Comparison:
    """Compare two replicas level by level, as if over the network, and count.

    Cost: with d keys that differ at most 1 + 2 d depth hashes, in depth + 1 messages;
    one hash if nothing differs. All n states instead: n items.
    Raises: InvalidArgument if the trees differ in depth.
    """
    if mine.depth != theirs.depth:
        raise InvalidArgument(
            f"trees of depth {mine.depth} and {theirs.depth} have no places in common. "
            "Build both with the same depth."
        )
    places, hashes = [0], 1
    for level in range(mine.depth + 1):
        if level:
            places = children(places)
            hashes += len(places)
        places = mine.differing(level, theirs.hashes(level, places))
        if not places:
            break
    ours, others = dict(mine.items(places)), dict(theirs.items(places))
    keys = [key for key in ours.keys() | others.keys() if _differ(key, ours, others)]
    transferred = len(ours) + len(others)
    keys = tuple(sorted(keys, key=repr))
    return Comparison(tuple(places), keys, hashes, level + 1, transferred)


def _differ(key, ours, others):
    lacks = key not in ours or key not in others
    return lacks or ours[key] != others[key]
