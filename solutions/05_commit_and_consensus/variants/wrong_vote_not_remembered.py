"""Grants its vote, and grants it again to the next candidate of the term."""

POINTS = 0.0
HINT = "A vote is remembered"
REPLACE = {"self.voted_for = sender": "pass"}
