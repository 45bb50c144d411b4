"""Lists an item once for each add that is left."""

POINTS = 7.0
HINT = "each once"
REPLACE = {"sorted({*there.values()})": "sorted(there.values())"}
