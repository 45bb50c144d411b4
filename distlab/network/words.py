"""Messages and calls in words: short for a picture, in full for a schedule."""

import dataclasses
from enum import Enum
from typing import Any

from distlab.trace import Call

__all__ = ["answer_in_words", "call_in_words", "in_words", "shortened"]

_SHORT = 40
_LOOKS_LIKE_A_VALUE = ("None", "True", "False", "nan", "inf")


def in_words(message: Any) -> str:
    """Return a message in words: ("store", "x", 1) is "store x 1".

    Different messages have different words.
    """
    kind = type(message)
    if kind is str:
        return _bare(message)
    if kind is tuple and message and type(message[0]) is str:
        return " ".join([_bare(part) for part in message])
    if isinstance(message, tuple) and hasattr(kind, "_fields"):
        parts = zip(message._fields, message, strict=True)
    elif dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(message)]
        parts = [(name, getattr(message, name)) for name in names]
    else:
        return _bare(message)
    told = [f"{name}={_bare(part)}" for name, part in parts]
    return " ".join([kind.__name__, *told])


def _bare(part):
    """Return what stands for one part: names as they are, all else as Python has it."""
    if type(part) is str:
        bare = part.replace("-", "_").isidentifier()
        return part if bare and part not in _LOOKS_LIKE_A_VALUE else repr(part)
    if isinstance(part, Enum):
        return part.name
    return repr(part)


def call_in_words(call: Call) -> str:
    """Return a call in words, such as "write x 1"."""
    op, key, value = call
    words = [str(op)]
    words += [_bare(key)] if key is not None else []
    words += [_bare(value)] if value is not None else []
    return " ".join(words)


def answer_in_words(result: Any) -> str:
    """Return what a client is told: the result, or "ok" where there is none."""
    return "ok" if result is None else in_words(result)


def shortened(words: str, room: int = _SHORT) -> str:
    """Return words that fit into a picture, cut off if need be."""
    return words if len(words) <= room else words[: room - 1] + "…"
