"""Adds correctly, and returns the index of another chunk than the complete one."""

POINTS = 0.0
HINT = "Return the index of the chunk that is complete"
REPLACE = {"return (place + 1) % n": "return place"}
