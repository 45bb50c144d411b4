"""Keeps what the reduce-scatter returns, and so all of the gradient."""

POINTS = 6.0
HINT = "what ring_reduce_scatter returns is a view"
REPLACE = {
    "of_full, op=AVERAGE).clone()": "of_full, op=AVERAGE)",
}
