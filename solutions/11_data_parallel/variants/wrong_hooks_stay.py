"""Registers hooks in each step and removes none."""

POINTS = 6.0
HINT = "How many hooks has a parameter after 100 steps"
REPLACE = {"    for hook in hooks:\n        hook.remove()\n": ""}
