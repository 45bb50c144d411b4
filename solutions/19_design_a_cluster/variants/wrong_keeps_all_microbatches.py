"""Keeps all microbatches, as GPipe does."""

POINTS = 6.0
HINT = "GPipe"
REPLACE = {"min(pp, m) * ends": "m * ends"}
