"""Sends a repair again when another one is confirmed."""

POINTS = 7.0
HINT = "Reads that meet stale nodes cost too much"
REPLACE = {"sorted(stale - work.repaired)": "sorted(stale)"}
