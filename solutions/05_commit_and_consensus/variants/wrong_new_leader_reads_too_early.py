"""Reads up to its commit index, which is old in a new leader."""

POINTS = 8.0
HINT = "does not yet know which they are"
REPLACE = {"return max(self.commit, self.first)": "return self.commit"}
