"""Gives the snapshot its own dictionary, and not a copy."""

POINTS = 0.0
HINT = "shares its dictionaries"
REPLACE = {
    "return dict(self.counts), dict(self.marks)": ("return self.counts, self.marks"),
}
