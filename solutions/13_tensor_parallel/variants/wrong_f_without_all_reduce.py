"""Leaves out the all-reduce in the backward of f: identity both ways."""

POINTS = 0.0
HINT = "x goes to the columns of all ranks"
REPLACE = {"return None, summed(ctx.comm, gradient)": "return None, gradient"}
