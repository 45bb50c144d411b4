"""Leaves out the all-reduce in the backward of f: identity both ways."""

POINTS = 0.0
HINT = "This is the gradient through each rank's own columns"
REPLACE = {"return summed(ctx.comm, gradient), None": "return gradient, None"}
