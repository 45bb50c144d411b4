"""Keeps its log on disk, and begins again with term 0."""

POINTS = 8.0
HINT = "does not vote twice in a term"
REPLACE = {
    "return self.term, self.voted_for, self.log": "return self.log",
    "self.term, self.voted_for, self.log = saved": "self.log = saved",
}
