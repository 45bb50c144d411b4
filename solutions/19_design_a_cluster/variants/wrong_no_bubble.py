"""Leaves the pipeline's bubble out: then the bound is the same for each layout."""

POINTS = 7.0
HINT = "You compute the step of every layout that fits"
REPLACE = {' * (1 + (layout["pp"] - 1) / m)': ""}
