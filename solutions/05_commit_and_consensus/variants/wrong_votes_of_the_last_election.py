"""Keeps the votes of the last election, and adds its own."""

POINTS = 0.0
HINT = "with whom does the set begin"
REPLACE = {"CANDIDATE, None, {self.me}": ("CANDIDATE, None, self.votes | {self.me}")}
