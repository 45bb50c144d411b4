"""Adds up the gradients of all key-value heads, also of different ones."""

POINTS = 7.0
HINT = "Others have another head"
REPLACE = {"sharing = comm.split(comm.rank // copies)": "sharing = comm"}
