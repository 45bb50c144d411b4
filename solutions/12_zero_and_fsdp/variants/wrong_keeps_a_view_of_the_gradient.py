"""Keeps what the reduce-scatter returns, and so all of the gradient."""

POINTS = 7.0
HINT = "is a view of the tensor that it was given"
REPLACE = {
    "op=AVERAGE).clone()": "op=AVERAGE)",
}
