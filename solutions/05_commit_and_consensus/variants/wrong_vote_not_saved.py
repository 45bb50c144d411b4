"""Forgets its vote in a crash, and can vote twice in a term."""

POINTS = 8.0
HINT = "does not vote twice in a term"
REPLACE = {
    "return self.term, self.voted_for, self.log": "return self.term, None, self.log"
}
