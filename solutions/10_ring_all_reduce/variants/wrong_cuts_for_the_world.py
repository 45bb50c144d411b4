"""Cuts a chunk for each rank of the world, also for those that are not in the ring."""

POINTS = 4.0
HINT = "how many places are there"
REPLACE = {"split(tensor, len(ring))": "split(tensor, comm.world_size)"}
