"""Counts by event time, and not by window."""

POINTS = 0.0
HINT = "one count in each window"
REPLACE = {
    "place = time // WINDOW_S * WINDOW_S, key": "place = time, key",
}
