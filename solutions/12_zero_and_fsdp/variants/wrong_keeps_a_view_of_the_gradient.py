"""Keeps what the reduce-scatter returns, and so all of the gradient."""

POINTS = 7.0
HINT = "what ring_reduce_scatter returns is a view"
REPLACE = {
    "op=AVERAGE).clone()": "op=AVERAGE)",
}
