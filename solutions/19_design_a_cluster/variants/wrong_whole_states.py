"""Forgets that ZeRO cuts the optimizer state."""

POINTS = 6.0
HINT = "Something is not cut"
REPLACE = {'12 / (dp if layout["zero"] > 0 else 1)': "12"}
