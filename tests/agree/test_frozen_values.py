"""What a node remembers is frozen and thawed exactly, or refused."""

import itertools
import random
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import pytest

from distlab.network.copies import NotPlain, SplitMix64, freeze, thaw


@dataclass
class Plain:
    """A dataclass."""

    a: Any
    b: Any = None


class Pair(NamedTuple):
    """A named tuple."""

    a: Any
    b: Any = None


class Slotted:
    """Two names for one list."""

    __slots__ = ("one", "other")

    def __init__(self):
        self.one = self.other = [1]


class Colour(Enum):
    """An enumeration."""

    RED = 1


class Handler:
    """Holds its own method, a counter and chance."""

    def __init__(self):
        self.handlers = {"take": self.take}
        self.numbers = itertools.count(3)
        self.chance = random.Random(1)

    def take(self):
        return self


def anything(chance, depth=3):
    leaves = [None, True, 1, 1.0, -0.0, 2**70, "a", "", b"x", 1j, Colour.RED, int]
    if depth == 0 or chance.random() < 0.3:
        return chance.choice(leaves)
    parts = [anything(chance, depth - 1) for _ in range(chance.randrange(4))]
    keys = [chance.choice(["a", "b", 1, (1, "c"), 2.5]) for _ in parts]
    kind = chance.randrange(10)
    if kind == 0:
        return parts
    if kind == 1:
        return tuple(parts)
    if kind == 2:
        return dict(zip(keys, parts, strict=True))
    if kind == 3:
        return set(keys or [1])
    if kind == 4:
        return Plain(parts)
    if kind == 5:
        return Pair(parts, frozenset(keys))
    if kind == 6:
        return deque(parts, maxlen=5)
    if kind == 7:
        return Counter(keys)
    if kind == 8:
        return defaultdict(list, zip(keys, parts, strict=True))
    return OrderedDict(zip(keys, parts, strict=True))


def test_a_thawed_value_is_like_the_frozen_one_and_shares_nothing_with_it():
    chance = random.Random(7)
    frozen = {}
    for _ in range(2000):
        value = anything(chance)
        cold = freeze(value)
        hash(cold)
        twin = thaw(cold)
        assert twin == value and freeze(twin) == cold
        # Equal only if alike, type by type, which repr tells; but a set has no order.
        if "set'>" not in repr(cold):
            assert repr(twin) == repr(value)
            assert frozen.setdefault(cold, repr(value)) == repr(value)
        if isinstance(value, list):
            twin.append("more")
            assert freeze(value) == cold
    assert len(frozen) > 500


@pytest.mark.parametrize(
    "one, other",
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ((1,), [1]),
        ({1: 2, 3: 4}, {3: 4, 1: 2}),
        ({1}, frozenset({1})),
        (Plain(1), Pair(1)),
        ("1", b"1"),
    ],
)
def test_what_a_node_could_tell_apart_is_not_the_same_when_frozen(one, other):
    assert freeze(one) != freeze(other)
    assert freeze((one,)) != freeze((other,))


def test_one_list_with_two_names_stays_one():
    twin = thaw(freeze(Slotted()))
    assert twin.one is twin.other
    endless = []
    endless.append(endless)
    twin = thaw(freeze(endless))
    assert twin[0] is twin
    apart = [[1], [1]]
    assert freeze(apart) != freeze([apart[0], apart[0]])


def test_methods_counters_and_chance_go_on_where_they_were():
    handler = Handler()
    next(handler.numbers), handler.chance.random()
    twin = thaw(freeze(handler))
    assert twin.handlers["take"]() is twin
    assert next(twin.numbers) == next(handler.numbers) == 4
    assert twin.chance.random() == handler.chance.random()


@pytest.mark.parametrize(
    "value", [(n for n in range(3)), {1: open}, [Handler, lambda: 1], {Plain}]
)
def test_what_cannot_be_copied_is_refused_and_functions_are_kept(value):
    if isinstance(value, dict | list | set):
        assert thaw(freeze(value)) == value
    else:
        with pytest.raises(NotPlain, match="a generator"):
            freeze(value)


def test_chance_with_a_small_state_is_as_good_and_goes_on_after_a_thaw():
    chance = SplitMix64("seed")
    drawn = [chance.random() for _ in range(20_000)]
    assert 0 <= min(drawn) < 0.001 and 0.999 < max(drawn) < 1
    assert abs(sum(drawn) / len(drawn) - 0.5) < 0.01
    counts = Counter(chance.randrange(6) for _ in range(60_000))
    assert all(9_600 < counts[n] < 10_400 for n in range(6))
    assert sorted(chance.sample(range(10), 10)) == list(range(10))
    assert chance.getrandbits(200) < 2**200
    twin = thaw(freeze(chance))
    assert [twin.random() for _ in range(5)] == [chance.random() for _ in range(5)]
    assert SplitMix64("seed").random() == drawn[0] != SplitMix64("other").random()
