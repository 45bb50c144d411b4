"""Values as what can be compared, hashed, kept, and made again: `freeze` and `thaw`.

Two values freeze to the same exactly if a node could not tell them apart: 1 is not
True, and a dict remembers its order, as a node may go through it. What is in two places
is noted as such, so that a list with two names is one list again when it is thawed.
"""

import types
from collections import deque
from collections.abc import Hashable
from enum import Enum
from functools import lru_cache
from numbers import Number
from random import Random
from typing import Any

from distlab.network.plain import ATOMS, NotPlain

__all__ = ["freeze", "thaw"]

_EXACT = frozenset({type(None), str, bytes, int})
_AGAIN, _REDUCED = "again", "reduced"
_WHOLE = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


def freeze(value: Any) -> Hashable:
    """Return what stands for a value: equal only for values that are alike.

    Raises: NotPlain for what can be neither compared nor copied, such as a generator.
    """
    return _Freezing().of(value)


def thaw(frozen: Hashable) -> Any:
    """Return the value, made anew: it shares nothing that can change with any other."""
    return _Thawing().of(frozen)


class _Freezing:
    """One freezing: what can change is numbered, so that a second sight is known."""

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
        if isinstance(value, _WHOLE):
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
        if kind is deque:
            return (deque, value.maxlen, *map(self.of, value))
        if kind is types.MethodType:
            return (kind, value.__func__, self.of(value.__self__))
        if isinstance(value, dict):
            items = [part for item in value.items() for part in map(self.of, item)]
            factory = getattr(value, "default_factory", None)
            return (kind, factory, *items)
        if isinstance(value, Random):
            return (Random, kind, value.getstate())
        ordinary = kind.__reduce_ex__ is object.__reduce_ex__
        if ordinary and kind.__reduce__ is object.__reduce__:
            fields = [(n, getattr(value, n)) for n in _slots(kind) if hasattr(value, n)]
            fields += getattr(value, "__dict__", {}).items()
            if fields or hasattr(value, "__dict__"):
                return (object, kind, *[p for n, v in fields for p in (n, self.of(v))])
        return (_REDUCED, *map(self.of, _reduced(value)))

    def _hashed(self, values):
        """Return the parts of a set, which has no order that anything could count."""
        seen = len(self.seen)
        parts = frozenset(map(self.of, values))
        if len(self.seen) > seen:
            raise NotPlain(values)
        return parts


def _reduced(value):
    """Return how pickle would make a value again: a function, arguments and a state."""
    try:
        reduced = value.__reduce_ex__(4)
    except TypeError:
        raise NotPlain(value) from None
    if isinstance(reduced, str) or any(part is not None for part in reduced[3:]):
        raise NotPlain(value)
    return (*reduced, None)[:3]


@lru_cache(maxsize=1024)
def _slots(kind):
    return [name for base in kind.__mro__ for name in _own_slots(base)]


def _own_slots(kind):
    names = kind.__dict__.get("__slots__", ())
    names = (names,) if isinstance(names, str) else names
    return [name for name in names if name not in ("__dict__", "__weakref__")]


class _Thawing:
    """One thawing: what can change, in the order in which it was numbered."""

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
            return _atom(kind, frozen[1])
        if kind in (_REDUCED, Random):
            return self._changing(kind, frozen)
        if issubclass(kind, tuple):
            return kind.__new__(kind, *map(self.of, frozen[1:]))
        if issubclass(kind, Number | Enum | str | bytes):
            return frozen[1]
        return self._changing(kind, frozen)

    def _changing(self, kind, frozen):
        number = len(self.made)
        self.made.append(None)
        if kind is list:
            value = self.made[number] = []
            value += [p if type(p) in _EXACT else self.of(p) for p in frozen[1:]]
        elif kind is set:
            value = self.made[number] = set()
            value.update(map(self.of, frozen[1]))
        elif kind is deque:
            value = self.made[number] = deque(maxlen=frozen[1])
            value.extend(map(self.of, frozen[2:]))
        elif kind is Random:
            value = self.made[number] = frozen[1]()
            value.setstate(frozen[2])
        elif kind is _REDUCED:
            function, arguments, state = map(self.of, frozen[1:])
            value = self.made[number] = function(*arguments)
            if state is not None:
                _set_state(value, state)
        elif kind is types.MethodType:
            value = types.MethodType(frozen[1], self.of(frozen[2]))
            self.made[number] = value
        elif kind is object:
            value = self.made[number] = object.__new__(frozen[1])
            for at in range(2, len(frozen), 2):
                object.__setattr__(value, frozen[at], self.of(frozen[at + 1]))
        else:
            value = kind.__new__(kind)
            if frozen[1] is not None:
                value.default_factory = frozen[1]
            self.made[number] = value
            for at in range(2, len(frozen), 2):
                key = self.of(frozen[at])
                value[key] = self.of(frozen[at + 1])
        return value


def _set_state(value, state):
    if hasattr(value, "__setstate__"):
        value.__setstate__(state)
    else:
        value.__dict__.update(state)


def _atom(kind, text):
    return text == "True" if kind is bool else kind(text)
