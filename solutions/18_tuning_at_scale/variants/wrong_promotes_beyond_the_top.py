"""Promotes from the top rung, too."""

POINTS = 0.0
HINT = "with a rung that there is"
REPLACE = {
    "range(len(self.rungs) - 2, -1, -1)": "range(len(self.rungs) - 1, -1, -1)",
}
