"""Asks only whether what was read had ever been written."""

POINTS = 6.0
HINT = "not enough that each value that was read has been written"


def linearizable(operations):
    written = {None} | {one.value for one in operations if one.op == "write"}
    return all(one.result in written for one in operations if one.op == "read")
