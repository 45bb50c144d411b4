"""Restores its state only if it has none, as after a restart."""

POINTS = 0.0
HINT = "counts and watermarks of the old one are all void"
REPLACE = {
    "self.counts = dict(counts)": (
        'self.counts = getattr(self, "counts", dict(counts))'
    ),
}
