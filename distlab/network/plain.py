"""Plain data: what a message may be made of, and the copy that its receiver gets.

Two nodes of a real cluster share no memory. In a simulator they would, if the object
that one sends were the object that the other keeps. What cannot change, such as a tuple
of numbers, needs no copy, and most messages are that.
"""

import copy
import dataclasses
from collections import Counter, OrderedDict, defaultdict
from enum import Enum
from numbers import Number
from typing import Any

__all__ = ["NotPlain", "copied"]

ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
_DICTS = (dict, Counter, OrderedDict, defaultdict)


class NotPlain(Exception):
    """A value that no message can carry; `where` it is and `part` what is wrong there.

    Whoever asked for the copy knows whose value it was, and tells the learner.
    """

    def __init__(self, part: Any, where: str = ""):
        super().__init__(part, where)
        self.part, self.where = part, where

    def __str__(self):
        kind = type(self.part).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        return f"{article} {kind}"


def copied(value: Any) -> Any:
    """Return a copy of plain data; the value itself if nothing in it can change.

    Raises: NotPlain if any part of it is something else.
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
        _parts(value)  # what is in it can be hashed, and so does not change
        return value
    if isinstance(value, tuple) and hasattr(kind, "_make"):
        return _same_or(value, kind._make(_parts(value)))
    if dataclasses.is_dataclass(kind):
        return _dataclass(value)
    if isinstance(value, Number | Enum | str | bytes):
        return value
    raise NotPlain(value)


def _parts(values):
    """Return the copied parts of a value; name the place of one that is not plain."""
    parts = []
    for place, part in enumerate(values):
        try:
            parts.append(part if type(part) in ATOMS else copied(part))
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
    twin = copy.copy(value)  # keeps what a Counter or a defaultdict is besides
    for key, part in value.items():
        if type(part) in ATOMS and type(key) in ATOMS:
            continue
        try:
            copied(key)
            twin[key] = copied(part)
        except NotPlain as error:
            error.where = f"[{key!r}]" + error.where
            raise
    return twin


def _dataclass(value):
    changed = {}
    for field in dataclasses.fields(value):
        part = getattr(value, field.name)
        try:
            twin = copied(part)
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
