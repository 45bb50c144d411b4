"""Operations in words."""

import reprlib
from typing import Any

from distlab.trace import Operation

__all__ = ["called", "described", "shown"]

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 40


def shown(value: Any) -> str:
    """Return a value as short text; strings that are plain words lose their quotes."""
    if isinstance(value, str) and value.replace("_", "").isalnum():
        return value
    return _SHORT.repr(value)


def called(client: int | str) -> str:
    """Return the name of a client: "client 2", or its own."""
    return f"client {client}" if isinstance(client, int) else str(client)


def described(operation: Operation) -> str:
    """Return an operation in words: "client 2's read of x → 1"."""
    client, op, key, value, _, _, outcome, result = operation
    words = f"{called(client)}'s {op}"
    if value is not None:
        words += f" of {_pair(value) if op == 'cas' else shown(value)}"
        words += f" to {shown(key)}" if key is not None else ""
    elif key is not None:
        words += f" of {shown(key)}"
    if outcome != "ok":
        return words + (" (refused)" if outcome == "failed" else " (unknown outcome)")
    return (
        words if result is None and value is not None else f"{words} → {shown(result)}"
    )


def _pair(value):
    if isinstance(value, tuple | list) and len(value) == 2:
        return f"{shown(value[0])}→{shown(value[1])}"
    return shown(value)
