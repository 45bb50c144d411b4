"""Counts a bubble for each microbatch: the bound of a pipeline is above its step."""

POINTS = 7.0
HINT = "Another layout that fits is faster"
REPLACE = {'(layout["pp"] - 1) / m': '(layout["pp"] - 1) * m'}
