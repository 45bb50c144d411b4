"""Keeps its own dots, whatever the other state has seen."""

POINTS = 6.0
HINT = "A removed item is still there"
REPLACE = {
    "{d: i for d, i in mine.items() if d in other or d[1] > known.get(d[0], 0)}": "mine"
}
