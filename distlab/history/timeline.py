"""`timeline`: a short history as text, a line for each operation.

                                0 1 2 5
a  client 0's write of 1        ├─────┤
b  client 1's read → None         ├─┤
"""

from collections.abc import Sequence
from string import ascii_lowercase

from distlab.history.words import described
from distlab.trace import Operation

__all__ = ["timeline"]


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
