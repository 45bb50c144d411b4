"""Waits for all reduce-scatters at the end of backward."""

POINTS = 7.0
HINT = "At most one all-gather and one reduce-scatter are under way"
REPLACE = {"(full, x), gradient)\n        settle()": "(full, x), gradient)"}
