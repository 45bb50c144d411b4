"""Messages and calls in words: short for a picture, in full for a schedule."""

import dataclasses
from enum import Enum
from typing import Any

from distlab.trace import Call

__all__ = ["describe", "describe_call", "describe_response", "picture_words"]
__all__ += ["shorten"]

_SHORT = 40
_LOOKS_LIKE_A_VALUE = ("None", "True", "False", "nan", "inf")


def describe(message: Any) -> str:
    """Return a message in words: ("store", "x", 1) is "store x 1".

    Different messages have different words.
    """
    kind = type(message)
    if kind is str:
        return _token(message)
    if kind is tuple and message and type(message[0]) is str:
        return " ".join([_token(part) for part in message])
    if isinstance(message, tuple) and hasattr(kind, "_fields"):
        parts = zip(message._fields, message, strict=True)
    elif dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(message)]
        parts = [(name, getattr(message, name)) for name in names]
    else:
        return _token(message)
    described = [f"{name}={_token(part)}" for name, part in parts]
    return " ".join([kind.__name__, *described])


def _token(part):
    """Return one part as text: names as they are, all others as their repr."""
    if type(part) is str:
        bare = part.replace("-", "_").isidentifier()
        return part if bare and part not in _LOOKS_LIKE_A_VALUE else repr(part)
    if isinstance(part, Enum):
        return str(part)
    return repr(part)


def describe_call(call: Call) -> str:
    """Return a call in words, such as "write x 1"."""
    op, key, value = call
    words = [str(op)]
    words += [_token(key)] if key is not None else []
    words += [_token(value)] if value is not None else []
    return " ".join(words)


def describe_response(call: Call, result: Any) -> str:
    """Return a response in words: the result, or "ok" for a call without one."""
    asks = call.op in ("read", "dequeue")
    return describe(result) if asks or result is not None else "ok"


def picture_words(message: Any) -> str:
    """Return a message in the words for a picture: its own `in_picture`, if it has."""
    return shorten(getattr(message, "in_picture", None) or describe(message))


def shorten(words: str, room: int = _SHORT) -> str:
    """Return words, cut off after `room` characters to fit into a picture."""
    return words if len(words) <= room else words[: room - 1] + "…"
