"""Sends a bucket when the first of its gradients is there."""

POINTS = 6.0
HINT = "A bucket is full when each of its parameters"
REPLACE = {
    "if any(missing": "if all(missing",
}
