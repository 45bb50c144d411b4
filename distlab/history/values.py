"""Keys and values as JSON, and back, exactly.

JSON's own values stay as they are. Any other value is an object with one name
that begins with a dollar sign: `{"$tuple": [1, 2]}`, `{"$bytes": "00ff"}`,
`{"$set": [...]}`, `{"$frozenset": [...]}`, `{"$float": "inf"}`, and
`{"$dict": [[key, value], ...]}` for a dict whose keys are not all strings, or one of
whose keys begins with a dollar sign itself.
"""

import math
from typing import Any

from distlab.errors import HistoryError

__all__ = ["from_plain", "to_plain"]

_PLACES = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}


def to_plain(value: Any) -> Any:
    """Return the JSON value that represents `value`."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is bytes:
        return {"$bytes": value.hex()}
    if kind is list:
        return [to_plain(item) for item in value]
    for name, place in _PLACES.items():
        if kind is place:
            return {name: [to_plain(item) for item in value]}
    if kind is not dict:
        raise HistoryError(
            f"{value!r} is of the type {kind.__name__}, which a history's file cannot "
            "hold. Write None, numbers, strings, bytes, and tuples, lists, sets and "
            "dicts of them."
        )
    if all(type(key) is str and key[:1] != "$" for key in value):
        return {key: to_plain(item) for key, item in value.items()}
    return {"$dict": [[to_plain(key), to_plain(item)] for key, item in value.items()]}


def from_plain(plain: Any) -> Any:
    """Return the value that `plain` represents.

    Raises ValueError for an object whose name with a dollar sign is none of these.
    """
    if isinstance(plain, list):
        return [from_plain(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    names = [name for name in plain if name[:1] == "$"]
    if not names:
        return {name: from_plain(item) for name, item in plain.items()}
    (name, item), *others = plain.items()
    try:
        if name in _PLACES and not others:
            return _PLACES[name](map(from_plain, _listed(item)))
        if name == "$bytes" and not others:
            return bytes.fromhex(item)
        if name == "$float" and not others:
            return float(item)
        if name == "$dict" and not others:
            return {from_plain(key): from_plain(one) for key, one in _listed(item)}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot hold {item!r} ({error})") from None
    raise ValueError(f"{names[0]!r} stands for no kind of value")


def _listed(item):
    if not isinstance(item, list):
        raise ValueError("it takes a list")
    return item
