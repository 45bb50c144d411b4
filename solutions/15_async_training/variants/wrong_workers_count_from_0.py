"""Keeps clocks in a list, and takes a worker's number for a place in it."""

POINTS = 0.0
HINT = "Workers have the numbers"
REPLACE = {"dict.fromkeys(workers, 0)": "[0] * len(workers)"}
