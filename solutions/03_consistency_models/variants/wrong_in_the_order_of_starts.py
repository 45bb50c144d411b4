"""Lets each operation take effect when it is called."""

POINTS = 6.0
HINT = "in the order of their starts"


def linearizable(operations):
    value = None
    for one in operations:
        if one.op == "write":
            value = one.value
        elif one.result != value:
            return False
    return True
