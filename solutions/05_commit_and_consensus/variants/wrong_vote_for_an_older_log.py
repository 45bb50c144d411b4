"""Votes for any first candidate of a term, also one whose log is older."""

POINTS = 0.0
HINT = "Which of two logs is newer"
REPLACE = {"(request.last_term, request.last) >= mine": "True"}
