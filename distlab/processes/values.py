"""A packed value as plain data, opened in a process of its own.

    Classified ── packed ──▶ opened, in a guard
               ◀── JSON ───

What is no plain data arrives as `Odd`, which equals nothing.
"""

import pickle
import reprlib
from typing import NamedTuple

from distlab.processes.apart import ask
from distlab.processes.guard import guard_for_good
from distlab.processes.memory import limit_memory

__all__ = ["Odd", "main", "plain_data"]

_MEMORY_BYTES, _OPEN_S = 2**29, 10
_PLAIN = (type(None), bool, int, float, str)


class Odd(NamedTuple):
    """Stands for what is no plain data."""

    kind: str
    shown: str

    def __repr__(self):
        return f"{self.shown} (a {self.kind})"


def plain_data(packed: bytes) -> object:
    """Return what is packed, as numbers, strings, None, lists, tuples and dicts.

    packed: a tuple of one thing, pickled.

    Raises: TrialTimeout or RuntimeError if it cannot be opened.
    """
    return _value(ask(__name__, {"packed": packed}, timeout_s=_OPEN_S)["value"])


def main(task: dict) -> dict:
    """Open what is packed, where nothing else is."""
    limit_memory(_MEMORY_BYTES)
    guard_for_good()
    return {"value": _told(pickle.loads(task["packed"])[0])}


def _told(value):
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (list, tuple):
        return {kind.__name__: list(map(_told, value))}
    if kind is dict:
        return {"dict": [[_told(key), _told(own)] for key, own in value.items()]}
    shown = " ".join(reprlib.repr(value).split())[:100]
    return {"odd": [str(kind.__name__)[:100], shown]}


def _value(told):
    if type(told) is not dict:
        return told
    ((kind, parts),) = told.items()
    if kind == "dict":
        return {_value(key): _value(own) for key, own in parts}
    if kind == "odd":
        return Odd(*map(str, parts))
    return {"list": list, "tuple": tuple}[kind](map(_value, parts))
