"""Fits the first measurement, the last one and one between: exact, if they are."""

POINTS = 7.0
HINT = "Do all of the points take part"
REPLACE = {
    "n, throughput =": "measured = [measured[0], measured[len(measured) // 2], "
    "measured[-1]]\n    n, throughput ="
}
