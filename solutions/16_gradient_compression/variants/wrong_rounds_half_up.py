"""Rounds half of an element up, where Python's round goes to the even number."""

POINTS = 3.0
HINT = "Exactly k elements travel"
REPLACE = {
    "k = max(1, round(density * len(flat)))\n    indices = flat.abs()": (
        "k = max(1, int(density * len(flat) + 0.5))\n    indices = flat.abs()"
    )
}
