"""The ten lines of the lesson."""

from itertools import permutations

POINTS = 6.0
HINT = "14 operations have 87 billion orders"


def explained(order):
    value, latest = None, float("-inf")
    for one in order:
        if one.end < latest or (one.op == "read" and one.result != value):
            return False
        latest = max(latest, one.start)
        value = one.value if one.op == "write" else value
    return True


def linearizable(operations):
    return any(explained(order) for order in permutations(operations))
