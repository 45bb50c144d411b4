"""Leaves what the map tasks sent side by side."""

POINTS = 6.0
HINT = "have met, and have not become one"
REPLACE = {
    "return placed.mapPartitions(combine, preservesPartitioning=True)": "return placed",
}
