"""Leaves the embedding and the output layer out."""

POINTS = 6.0
HINT = "The stages at the ends"
REPLACE = {"extra = sum(matrices) if pp == 1 else max(matrices)": "extra = 0"}
