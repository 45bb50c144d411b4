"""Gives the snapshot its own dictionary, and not a copy."""

POINTS = 0.0
HINT = "shares its dictionaries"
REPLACE = {
    "yield from self.save(checkpoint, (dict(self.counts), dict(self.marks)))": (
        "yield from self.save(checkpoint, (self.counts, self.marks))"
    ),
}
