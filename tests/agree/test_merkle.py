"""Merkle trees against a plain comparison of two dicts, and their cost."""

import random

import pytest

from distlab.agree.merkle import MerkleTree, children, compare
from distlab.errors import InvalidArgument


def replicas(keys, differing, seed):
    """Return two replicas of equal keys, of which some differ or are missing."""
    dice = random.Random(seed)
    mine = {f"key {n}": (n, dice.random()) for n in range(keys)}
    theirs = dict(mine)
    for key in dice.sample(sorted(mine), differing):
        dice.choice([theirs.pop, mine.pop, lambda k: theirs.update({k: "new"})])(key)
    return mine, theirs


@pytest.mark.parametrize("depth", [0, 1, 6, 10])
def test_a_comparison_finds_the_keys_that_two_dicts_differ_in_and_counts(depth):
    for seed in range(12):
        mine, theirs = replicas(200, seed, seed)
        both = {k for k in mine.keys() | theirs.keys() if mine.get(k) != theirs.get(k)}
        found = compare(MerkleTree(mine, depth), MerkleTree(theirs, depth))
        assert set(found.keys) == both
        assert found.hashes <= 1 + 2 * len(both) * depth
        assert found.messages == (depth + 1 if both else 1)
        assert len(both) <= found.transferred or not both
        assert compare(MerkleTree(mine, depth), MerkleTree(mine, depth)).hashes == 1


def test_one_key_of_many_is_found_with_a_logarithm_of_hashes_and_one_leaf_of_items():
    mine, theirs = replicas(4096, 0, 0)
    theirs["key 7"] = "new"
    found = compare(MerkleTree(mine, 12), MerkleTree(theirs, 12))
    assert found.keys == ("key 7",)
    assert found.hashes == 1 + 2 * 12
    assert found.transferred < 20


def test_the_order_of_insertion_changes_no_hash_and_any_state_does():
    items = {("x", 1): [1, 2], 3: {"a": 1}, "y": None}
    again = dict(reversed(items.items()))
    assert MerkleTree(items, 0).hash(0, 0) == MerkleTree(again, 0).hash(0, 0)
    for key in items:
        assert MerkleTree(items | {key: 0}).hash(0, 0) != MerkleTree(items).hash(0, 0)


def test_a_place_has_its_two_children_below_it():
    assert children([0, 3]) == [0, 1, 6, 7]


def test_depths_that_are_none_or_differ_are_named():
    for depth in (-1, 21, 1.5, None):
        with pytest.raises(InvalidArgument, match="0 to 20 levels"):
            MerkleTree({}, depth)
    with pytest.raises(InvalidArgument, match="depth 2 and 3"):
        compare(MerkleTree({}, 2), MerkleTree({}, 3))
