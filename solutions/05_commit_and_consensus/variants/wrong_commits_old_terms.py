"""Commits what a majority holds, also entries of old terms (figure 8)."""

POINTS = 4.0
HINT = "Figure 8"
REPLACE = {" and self.term_at(index) == self.term": ""}
