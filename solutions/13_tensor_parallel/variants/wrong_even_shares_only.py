"""Rounds down, so that the last columns and heads are on no rank."""

POINTS = 7.0
HINT = "one more"


def share(count, n, rank):
    return slice(rank * (count // n), (rank + 1) * (count // n))
