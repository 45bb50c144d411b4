"""Pairs in partitions for the checks of RDDs, and what one process makes of them."""

import json
from collections.abc import Callable
from pathlib import Path

from distlab.grading.salt import salted

__all__ = ["LONG", "joined_pairs", "large_and_small", "reduced_pairs", "shape"]

LONG = "a table of 60,000 rows"
_LETTERS = "abcdefgh"
_KINDS = [0, 1, -1, 7, 2.5, None, "", "a", "0", (), (1, "b"), ("a", None)]


def shape(name: str) -> dict:
    """Return parts, function and partitions of a case for reduce_by_key, by its name.

    others: pairs of some of the keys, and of one more, to join with.
    """
    rng = salted(name)
    parts, function, partitions = _SHAPES[name](rng)
    keys = sorted({key for part in parts for key, _ in part}, key=repr)
    some = rng.sample(keys, min(len(keys), 20))
    return {
        "parts": parts,
        "function": function,
        "partitions": partitions,
        "others": [(key, number) for number, key in enumerate([*some, "nowhere"])],
    }


def _words_of_modules(rng):
    folder = Path(json.__file__).parent
    paths = sorted(folder.glob("*.py"))[:3]
    parts = [[(word, 1) for word in path.read_text().split()] for path in paths]
    return parts, "the total", 2


def _cut(rng, keys, value: Callable, sizes):
    return [[(rng.choice(keys), value(rng)) for _ in range(n)] for n in sizes]


def _number(rng):
    return rng.randrange(1, 1000)


def _word(rng):
    return "".join(rng.choices(_LETTERS, k=rng.randrange(1, 5)))


def _an_empty_partition(rng):
    return _cut(rng, list(_LETTERS), _number, [30, 0, 5, 0, 40]), "the total", 3


def _one_key(rng):
    value = lambda rng: rng.randrange(10**15)  # noqa: E731 - few bytes hold no list
    return _cut(rng, ["self"], value, [400, 1, 600]), "the total", 3


def _all_keys_differ(rng):
    pairs = [(number * 7 % 101, _number(rng)) for number in range(60)]
    return [pairs[:10], pairs[10:11], pairs[11:]], "the smaller", 4


def _keys_of_many_kinds(rng):
    value = lambda rng: rng.choice([0, 0, *range(1, 40)])  # noqa: E731
    return _cut(rng, _KINDS, value, [50, 20, 30, 3]), "the smaller", 3


def _values_that_are_words(rng):
    return _cut(rng, list(range(9)), _word, [40, 25]), "the longer word", 2


def _values_that_are_lists(rng):
    value = lambda rng: rng.sample(range(30), rng.randrange(3))  # noqa: E731
    parts = _cut(rng, list(_LETTERS), lambda rng: sorted(value(rng)), [20, 1, 30])
    return parts, "both lists, merged", 3


def _sizes_that_are_not_known(rng):
    value = lambda rng: None if rng.random() < 0.1 else _number(rng)  # noqa: E731
    return (
        _cut(rng, list(_LETTERS), value, [30, 30, 20]),
        "the larger, if both are known",
        2,
    )


def _no_pair(rng):
    return [[], []], "the total", 2


def _one_partition(rng):
    return _cut(rng, list(_LETTERS), _number, [50]), "the total", 1


_SHAPES = {
    "words of three modules": _words_of_modules,
    "two of five partitions are empty": _an_empty_partition,
    "one key": _one_key,
    "all keys differ": _all_keys_differ,
    "keys of many kinds": _keys_of_many_kinds,
    "values that are words": _values_that_are_words,
    "values that are lists": _values_that_are_lists,
    "sizes, some of which are not known": _sizes_that_are_not_known,
    "no pair at all": _no_pair,
    "one partition": _one_partition,
}


def reduced_pairs(parts: list, function: Callable) -> dict:
    """Return key -> all its values made one."""
    values = {}
    for part in parts:
        for key, value in part:
            values.setdefault(key, []).append(value)
    made = {}
    for key, own in values.items():
        while len(own) > 1:
            own.append(function(own.pop(0), own.pop(0)))
        made[key] = own[0]
    return made


def large_and_small(name: str) -> dict:
    """Return parts, the large side, and small, of a case for join_small.

    counted: whether the keys count how often they are looked for.
    """
    rng = salted(name)
    if name == LONG:
        return _long(rng) | {"counted": False}
    return _short(name, rng) | {"counted": True}


def _long(rng):
    """Return sides so long that only what is looked up is found in seconds.

    Nearly all records lie in one partition, which one worker goes through alone.
    """
    rows, records = (
        [f"{letter}{number}" for number in range(60_000)] for letter in "rl"
    )
    both = rng.sample(rows, 40)
    small = [(key, _number(rng)) for key in rows]
    large = [(key, _number(rng)) for key in [*records, *both]]
    rng.shuffle(small)
    rng.shuffle(large)
    return {"parts": [large[:60_000], large[60_000:]], "small": small}


def _short(name, rng):
    words = [f"{_word(rng)}{number}" for number in range(40)]
    if name == "a table of one row":
        return {
            "parts": _cut(rng, words[:5], _number, [20, 20]),
            "small": [(words[2], 1)],
        }
    if name == "an empty table":
        return {"parts": _cut(rng, words, _number, [9, 9]), "small": []}
    if name == "keys with several values":
        some = [*words[:12], "nobody", "nothing"]
        small = [(rng.choice(some), _number(rng)) for _ in range(30)]
        return {"parts": _cut(rng, words, _number, [40, 0, 30]), "small": small}
    if name == "values that are zero, empty or None":
        odd = lambda rng: rng.choice([0, "", None, (), 1, False])  # noqa: E731
        small = [(rng.choice(words[:9]), odd(rng)) for _ in range(20)]
        return {"parts": _cut(rng, words[:14], odd, [20, 20, 5]), "small": small}
    assert name == "a table of 600 rows", name
    keys = [f"row {number}" for number in range(700)]
    small = [(key, f"{key}: " + _word(rng) * 15) for key in keys[:500]]
    small += [(rng.choice(keys), "twice") for _ in range(100)]
    rng.shuffle(small)
    return {
        "parts": _cut(rng, keys, _number, [90, 80, 10, 100, 60, 60]),
        "small": small,
    }


def joined_pairs(parts: list, small: list) -> list:
    """Return (key, (large value, small value)) for every two pairs with one key."""
    rows = {}
    for key, value in small:
        rows.setdefault(key, []).append(value)
    large = [pair for part in parts for pair in part]
    return [
        (key, (value, other)) for key, value in large for other in rows.get(key, ())
    ]
