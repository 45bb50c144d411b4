"""Looks at the rungs from the bottom up."""

POINTS = 0.0
HINT = "the highest rung goes first"
REPLACE = {
    "range(len(self.rungs) - 2, -1, -1)": "range(len(self.rungs) - 1)",
}
