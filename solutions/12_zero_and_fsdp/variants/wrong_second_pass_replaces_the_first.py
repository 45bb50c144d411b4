"""Forgets that a gradient may be there already."""

POINTS = 6.0
HINT = "The gradient of the first pass is lost"
REPLACE = {
    "part.grad = mean if part.grad is None else part.grad + mean\n        del": (
        "part.grad = mean\n        del"
    ),
}
