"""Asks the check for its own search."""

POINTS = 6.0
HINT = "own checkers are locked"


def linearizable(operations):
    from distlab.grading.agreement.orders import searched

    return searched(operations)
