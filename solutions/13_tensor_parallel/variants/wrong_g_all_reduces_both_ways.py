"""Sums the gradient of the output over the ranks, too."""

POINTS = 0.0
HINT = "times what it should be"
REPLACE = {
    "        return summed(comm, partial)": (
        "        ctx.comm = comm\n        return summed(comm, partial)"
    ),
    "        return None, gradient": "        return None, summed(ctx.comm, gradient)",
}
