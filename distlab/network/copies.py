"""Copies of messages and saved values, and of the whole memory of a node.

    plain_copy      a message, a result, a saved value: plain data, checked and copied
    freeze, thaw    a whole node, as a value that can be compared, hashed, rebuilt

Two nodes of a real cluster share no memory. In a simulator they would, if the object
that one sends were the object that the other keeps. Immutable values, such as a tuple
of numbers, need no copy, and most messages are such.

Two values freeze to the same exactly if a node could not distinguish them: 1 is not
True, and a dict keeps its order, as a node may iterate over it. An object referenced
twice is marked, so that a list with two names is one list again when it is thawed.
"""

import copy
import dataclasses
import random
import types
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Hashable
from enum import Enum
from functools import lru_cache
from numbers import Number
from typing import Any

__all__ = ["ATOMS", "NotPlain", "SplitMix64", "freeze", "plain_copy", "thaw"]

ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
_DICTS = (dict, Counter, OrderedDict, defaultdict)
_EXACT = frozenset({type(None), str, bytes, int})  # atoms that freeze to themselves
_AGAIN, _REDUCED = "again", "reduced"
_MASK = (1 << 64) - 1
_CHANGING = (list, set, dict, object, _REDUCED)
_BY_REFERENCE = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


class NotPlain(Exception):
    """A value that cannot be copied: the `part` at fault, and `where` it is."""

    def __init__(self, part: Any, where: str = ""):
        super().__init__(part, where)
        self.part, self.where = part, where

    def __str__(self):
        kind = type(self.part).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        return f"{article} {kind}"


def plain_copy(value: Any) -> Any:
    """Return a copy of plain data; the value itself if it is immutable.

    Raises: NotPlain if any part of it is not plain data.
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is tuple:
        for part in value:
            if type(part) not in ATOMS:
                return _same_or(value, tuple(_parts(value)))
        return value
    if kind is list:
        return _parts(value)
    if kind in _DICTS:
        return _dict(value)
    if kind is set:
        return set(_parts(value))
    if kind is frozenset:
        _parts(value)  # its items can be hashed, and so do not change
        return value
    if isinstance(value, tuple) and hasattr(kind, "_make"):
        return _same_or(value, kind._make(_parts(value)))
    if dataclasses.is_dataclass(kind):
        return _dataclass(value)
    if isinstance(value, Number | Enum | str | bytes):
        return value
    raise NotPlain(value)


def _parts(values):
    """Return copies of the items; raise NotPlain with the place of one not plain."""
    parts = []
    for place, part in enumerate(values):
        try:
            parts.append(part if type(part) in ATOMS else plain_copy(part))
        except NotPlain as error:
            indexed = isinstance(values, tuple | list)
            error.where = (f"[{place}]" if indexed else "{…}") + error.where
            raise
    return parts


def _same_or(value, twin):
    """Return the value if copying changed no part of it, else its copy."""
    if all(mine is its for mine, its in zip(value, twin, strict=True)):
        return value
    return twin


def _dict(value):
    twin = copy.copy(value)  # keeps the class, and a defaultdict's factory
    for key, part in value.items():
        if type(part) in ATOMS and type(key) in ATOMS:
            continue
        try:
            plain_copy(key)
            twin[key] = plain_copy(part)
        except NotPlain as error:
            error.where = f"[{key!r}]" + error.where
            raise
    return twin


def _dataclass(value):
    changed = {}
    for field in dataclasses.fields(value):
        part = getattr(value, field.name)
        try:
            twin = plain_copy(part)
        except NotPlain as error:
            error.where = f".{field.name}" + error.where
            raise
        if twin is not part:
            changed[field.name] = twin
    if not changed and type(value).__dataclass_params__.frozen:
        return value
    twin = copy.copy(value)
    for name, part in changed.items():
        object.__setattr__(twin, name, part)
    return twin


def freeze(value: Any) -> Hashable:
    """Return a hashable form of a value: equal exactly for equivalent values.

    Raises: NotPlain for objects that can be neither compared nor copied: a generator.
    """
    return _Freezing().of(value)


def thaw(frozen: Hashable) -> Any:
    """Return the value, rebuilt: it shares no mutable object with any other."""
    return _Thawing().of(frozen)


class _Freezing:
    """One freezing: mutable objects are numbered, to recognize a second reference."""

    def __init__(self):
        self.seen = {}
        self.kept = []  # so that no id is given to a second object meanwhile

    def of(self, value):
        kind = type(value)
        if kind in _EXACT:
            return value
        if kind in ATOMS:  # bool, float, complex: equal to ints, or not to themselves
            return (kind, repr(value))
        if kind is tuple:
            return (tuple, *[v if type(v) in _EXACT else self.of(v) for v in value])
        if kind is frozenset:
            return (frozenset, self._hashed(value))
        if isinstance(value, tuple):
            return (kind, *map(self.of, value))
        if isinstance(value, _BY_REFERENCE):
            return (type, value)
        if isinstance(value, Number | Enum | str | bytes):
            return (kind, value)
        if id(value) in self.seen:
            return (_AGAIN, self.seen[id(value)])
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        return self._changing(kind, value)

    def _changing(self, kind, value):
        if kind is list:
            return (list, *[v if type(v) in _EXACT else self.of(v) for v in value])
        if kind is set:
            return (set, self._hashed(value))
        if kind is dict:
            parts = [part for item in value.items() for part in item]
            return (dict, *map(self.of, parts))
        ordinary = kind.__reduce_ex__ is object.__reduce_ex__
        if ordinary and kind.__reduce__ is object.__reduce__:
            fields = [(n, getattr(value, n)) for n in _slots(kind) if hasattr(value, n)]
            fields += getattr(value, "__dict__", {}).items()
            if fields or hasattr(value, "__dict__"):
                return (object, kind, *[p for n, v in fields for p in (n, self.of(v))])
        return (_REDUCED, *map(self.of, _reduced(value)))

    def _hashed(self, values):
        """Return the frozen items of a set; raise NotPlain if one is mutable."""
        seen = len(self.seen)
        parts = frozenset(map(self.of, values))
        if len(self.seen) > seen:
            raise NotPlain(values)
        return parts


def _reduced(value):
    """Return pickle's recipe of a value: function, arguments, state, items, pairs."""
    try:
        reduced = value.__reduce_ex__(4)
    except TypeError:
        raise NotPlain(value) from None
    if isinstance(reduced, str):
        raise NotPlain(value)
    function, *rest = reduced
    arguments, state, items, pairs = (*rest, None, None, None)[:4]
    return function, arguments, state, tuple(items or ()), tuple(pairs or ())


@lru_cache(maxsize=1024)
def _slots(kind):
    own = [vars(base).get("__slots__", ()) for base in kind.__mro__]
    names = [n for names in own for n in ((names,) if type(names) is str else names)]
    return [name for name in names if name not in ("__dict__", "__weakref__")]


class _Thawing:
    """One thawing: mutable objects, in the order in which they were numbered."""

    def __init__(self):
        self.made = []

    def of(self, frozen):
        if type(frozen) is not tuple:
            return frozen
        kind = frozen[0]
        if kind is tuple:
            return tuple([p if type(p) in _EXACT else self.of(p) for p in frozen[1:]])
        if kind is _AGAIN:
            return self.made[frozen[1]]
        if kind is frozenset:
            return frozenset(map(self.of, frozen[1]))
        if kind is type:
            return frozen[1]
        if kind in ATOMS:
            return frozen[1] == "True" if kind is bool else kind(frozen[1])
        if kind in _CHANGING:
            return self._changing(kind, frozen)
        if issubclass(kind, tuple):
            return kind.__new__(kind, *map(self.of, frozen[1:]))
        return frozen[1]

    def _changing(self, kind, frozen):
        number = len(self.made)
        self.made.append(None)
        if kind is list:
            value = self.made[number] = []
            value += [p if type(p) in _EXACT else self.of(p) for p in frozen[1:]]
        elif kind is set:
            value = self.made[number] = set(map(self.of, frozen[1]))
        elif kind is dict:
            value = self.made[number] = {}
            for at in range(1, len(frozen), 2):
                key = self.of(frozen[at])
                value[key] = self.of(frozen[at + 1])
        elif kind is object:
            value = self.made[number] = object.__new__(frozen[1])
            for at in range(2, len(frozen), 2):
                object.__setattr__(value, frozen[at], self.of(frozen[at + 1]))
        else:
            value = self._rebuilt(number, *frozen[1:])
        return value

    def _rebuilt(self, number, function, arguments, state, items, pairs):
        value = self.of(function)(*self.of(arguments))
        self.made[number] = value
        if (state := self.of(state)) is not None:
            if hasattr(value, "__setstate__"):
                value.__setstate__(state)
            else:
                value.__dict__.update(state)
        if items := self.of(items):
            value.extend(items)
        for key, part in self.of(pairs):
            value[key] = part
        return value


class SplitMix64(random.Random):
    """A `random.Random` with a state of 64 bits, not 20,000.

    Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
    (2014): SplitMix64.
    """

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Reset the state from `a`."""
        self._state = random.Random(a).getrandbits(64) if a is not None else 0

    def getrandbits(self, k: int) -> int:
        """Return `k` random bits."""
        bits = 0
        for _ in range(-(-k // 64)):
            self._state = mixed = (self._state + 0x9E3779B97F4A7C15) & _MASK
            mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
            mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
            bits = bits << 64 | mixed ^ (mixed >> 31)
        return bits >> (-k % 64)

    def random(self) -> float:
        """Return a number from 0 to below 1."""
        return self.getrandbits(53) * 2.0**-53

    def getstate(self) -> int:
        """Return the state, for `setstate`."""
        return self._state

    def setstate(self, state: int) -> None:
        """Restore a state that `getstate` returned."""
        self._state = state
