"""A short history in lanes of text, one for each client, and its operations' letters.

time      0            1     2
client 0  ├ a write 1 ───────┤
client 1               ├ b read → None ┤
"""

from collections.abc import Sequence
from string import ascii_letters

from distlab.trace import Operation

__all__ = ["lanes", "letters", "told"]


def letters(operations: Sequence[Operation]) -> dict[str, Operation]:
    """Return letter -> operation, in the order in which they are given."""
    return dict(zip(ascii_letters, operations, strict=False))


def told(one: Operation) -> str:
    """Return what was asked and answered in a few words."""
    where = "" if one.key is None else f" {one.key}"
    if one.op == "write":
        words = f"write{where} {one.value!r}"
    else:
        words = f"read{where}"
        words += f" → {one.result!r}" if one.outcome == "ok" else ""
    return words if one.outcome == "ok" else f"{words}, {one.outcome}"


def lanes(operations: Sequence[Operation]) -> str:
    """Return one line for each client, after one with the times."""
    if not operations:
        return "(a history without operations)"
    words = {letter: told(one) for letter, one in letters(operations).items()}
    column = _columns(operations, words)
    width = max(column.values()) + 1
    clients = sorted({one.client for one in operations}, key=str)
    heads = {client: f"  client {client}  " for client in clients}
    wide = max(map(len, heads.values()))
    line = ""
    for moment, place in sorted(column.items()):
        if moment != float("inf"):
            line = f"{line:{place}}{moment:g}"
    lines = ["  time".ljust(wide) + line]
    for client in clients:
        line = [" "] * width
        for letter, one in letters(operations).items():
            if one.client == client:
                _draw(line, column, one, f"{letter} {words[letter]}")
        lines.append(heads[client].ljust(wide) + "".join(line).rstrip())
    return "\n".join(lines)


def _end(one):
    return float("inf") if one.end is None else one.end


def _columns(operations, words):
    """Return moment -> column, so that each operation has room for its words."""
    moments = sorted({m for one in operations for m in (one.start, _end(one))})
    column, free, least = {}, {}, 0
    for moment in moments:
        starting = [one for one in operations if one.start == moment]
        least = max([least, *(free.get(one.client, 0) for one in starting)])
        for letter, one in letters(operations).items():
            if _end(one) == moment:
                room = len(f"{letter} {words[letter]}") + 3 + 2 * (one.end is None)
                least = max(least, column[one.start] + room)
        column[moment] = least
        for letter, one in letters(operations).items():
            if one.start == moment and one.end is None:
                free[one.client] = least + len(f"{letter} {words[letter]}") + 6
        least += len(f"{moment:g}") + 1
    return column


def _draw(line, column, one, words):
    first, last = column[one.start], column[_end(one)]
    if one.end is None:  # what its client calls later is drawn over the rest of it
        last = min([last, first + len(words) + 4])
    line[first : last + 1] = "─" * (last + 1 - first)
    line[first], line[last] = "├", "┤" if one.end is not None else "▷"
    line[first + 1 : first + 3 + len(words)] = f" {words} "
