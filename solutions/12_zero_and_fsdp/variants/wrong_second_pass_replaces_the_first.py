"""Forgets that a gradient may be there already."""

POINTS = 7.0
HINT = "The gradient of the first pass is lost"
REPLACE = {
    "mean if part.grad is None else part.grad + mean": "mean",
}
