"""Leaves the sum where the mean should be."""

POINTS = 7.0
HINT = "the sum where the mean belongs"
REPLACE = {
    "total.view(gradient.shape) / comm.world_size": "total.view(gradient.shape)",
}
