"""Leaves the sum where the mean should be."""

POINTS = 0.0
HINT = "This is the sum of all ranks' gradients"
REPLACE = {
    "piece / world_size": "piece",
}
