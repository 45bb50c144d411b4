"""Divides layers evenly, with a fraction."""

POINTS = 6.0
HINT = "Layers"
REPLACE = {'math.ceil(model["layers"] / pp)': 'model["layers"] / pp'}
