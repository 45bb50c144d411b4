"""Executes each entry, also one that repeats a call."""

POINTS = 8.0
HINT = "executed twice"
REPLACE = {"(0, None))[0] < number:": "(0, None))[0] <= number:"}
