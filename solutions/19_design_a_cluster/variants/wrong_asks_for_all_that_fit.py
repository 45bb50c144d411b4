"""Computes the step of each layout that fits."""

POINTS = 7.0
HINT = "You compute the step of every layout"
REPLACE = {"if bound_s >= best_s:": "if bound_s < 0:"}
