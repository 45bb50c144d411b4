"""Operations in words; `timeline` has a line for each of a short history.

                                0 1 2 5
a  client 0's write of 1        ├─────┤
b  client 1's read → None         ├─┤
"""

import reprlib
from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

from distlab.trace import Operation

__all__ = ["called", "described", "shown", "timeline"]

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
    done = value is not None or op in ("acquire", "release")
    return words if result is None and done else f"{words} → {shown(result)}"


def _pair(value):
    if isinstance(value, tuple | list) and len(value) == 2:
        return f"{shown(value[0])}→{shown(value[1])}"
    return shown(value)


def timeline(operations: Sequence[Operation]) -> str:
    """Return a line for each operation: a letter, its description, and its interval.

    Every time at which one starts or ends has a column, so equal times are visible,
    and lengths are not to scale. One without a response stays open to the right.
    """
    if not operations:
        return "  (no operations)"
    moments = {when for one in operations for when in (one.start, one.end)} - {None}
    ruler, column = "", {}
    for when in sorted(moments):
        column[when] = len(ruler)
        ruler += f"{when:g} "
    column[None] = len(ruler)
    letters = zip(ascii_lowercase, operations, strict=False)
    heads = [f"  {letter}  {described(one)}" for letter, one in letters]
    width = max(map(len, heads)) + 2
    lines = [" " * width + ruler.rstrip()]
    for head, one in zip(heads, operations, strict=False):
        bar = "├" + "─" * (column[one.end] - column[one.start] - 1)
        bar += "▷" if one.end is None else "┤"
        lines.append(f"{head:{width}}{' ' * column[one.start]}{bar}")
    return "\n".join(lines)
