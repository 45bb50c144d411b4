"""Leaves the code of step 1, and halves the density."""

POINTS = 7.0
HINT = "Count the bytes of a code"


class SmallHook(TopKHook):
    pass
