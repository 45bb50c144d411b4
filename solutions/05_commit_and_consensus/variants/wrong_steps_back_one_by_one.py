"""Asks a follower for one entry after another, from the last one back."""

POINTS = 8.0
HINT = "what it lacks is found too slowly"
REPLACE = {"last = min(self.last, sent.previous - 1)": "last = sent.previous - 1"}
