"""Commits as far as the leader has, though its own log may differ there."""

POINTS = 4.0
HINT = "The message vouches for what it has"
REPLACE = {"min(sent.commit, last)": "min(sent.commit, self.last)"}
