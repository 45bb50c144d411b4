"""Eight short histories of a store with the keys x and y, to be told apart.

Each of them stands for one thing that a store does, or does not do, to its clients.
"""

from distlab.trace import Operation

__all__ = ["EIGHT_HISTORIES"]


def _history(*lines):
    """Return operations, each from a line: client, op, key, value, start, end."""
    operations = []
    for line in lines:
        client, op, key, said, start, end = line.split()
        said = None if said == "None" else int(said)
        value, result = (said, None) if op == "write" else (None, said)
        when = float(start), float(end)
        operations.append(Operation(int(client), op, key, value, *when, "ok", result))
    return sorted(operations, key=lambda one: one.start)


EIGHT_HISTORIES: dict[str, list[Operation]] = {
    "A": _history(
        "0 write x 1 0 9",
        "2 write x 2 1 8",
        "1 read x 2 2 3",
        "1 read x 1 4 5",
        "2 read x 1 10 11",
    ),
    "B": _history(
        "0 write x 1 0 1",
        "0 write x 2 2 9",
        "2 read x 1 3 6",
        "1 read x 2 4 5",
        "1 read x 2 7 8",
    ),
    "C": _history(
        "0 write x 1 0 1",
        "0 write x 2 2 3",
        "1 read x 1 4 5",
        "1 read x 2 6 7",
    ),
    "D": _history(
        "0 write x 1 0 1",
        "0 write x 2 2 9",
        "1 read x 2 3 4",
        "2 read x 1 5 6",
        "2 read x 2 7 8",
    ),
    "E": _history(
        "0 write x 1 0 2",
        "1 write x 2 1 3",
        "2 read x 1 4 6",
        "3 read x 2 5 7",
        "2 read x 2 8 10",
        "3 read x 1 9 11",
    ),
    "F": _history(
        "0 write x 1 0 2",
        "1 write y 1 1 3",
        "0 read y None 4 6",
        "1 read x None 5 7",
        "0 read y 1 8 10",
        "1 read x 1 9 11",
    ),
    "G": _history(
        "0 write x 1 0 1",
        "1 read x 1 2 3",
        "1 write y 2 4 5",
        "2 read y 2 6 7",
        "2 read x None 8 9",
        "2 read x 1 10 11",
    ),
    "H": _history(
        "0 write x 1 0 1",
        "0 write x 2 2 3",
        "1 read x 2 4 5",
        "2 read x 2 4 7",
        "1 read x 1 6 8",
    ),
}
