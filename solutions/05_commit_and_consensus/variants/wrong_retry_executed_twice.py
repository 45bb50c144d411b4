"""Executes each entry, also one that repeats a call."""

POINTS = 8.0
HINT = "executed twice"
REPLACE = {"if number > done:": "if number:"}
