"""Doubles in the last round too, so that some pieces come twice."""

POINTS = 7.0
HINT = "No more than those have to travel"
REPLACE = {
    "min(distance, n - distance)": "distance",
}
