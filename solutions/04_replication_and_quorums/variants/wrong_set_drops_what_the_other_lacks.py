"""Takes what a state lacks for removed, also what it has not seen."""

POINTS = 6.0
HINT = "An add is missing that no remove had seen"
REPLACE = {"if d in other or d[1] > known.get(d[0], 0)}": "if d in other}"}
