"""Takes all dots that arrive for new, so that what was removed comes back."""

POINTS = 6.0
HINT = "A removed item is still there"
REPLACE = {"if d[1] > seen.get(d[0], 0)}": "}"}
