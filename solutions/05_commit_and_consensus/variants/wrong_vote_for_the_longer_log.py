"""Votes for the longer log, whatever the term of its last entry."""

POINTS = 0.0
HINT = "Which of two logs is newer"
REPLACE = {
    "(request.last_term, request.last) >= mine": "request.last >= self.last",
}
