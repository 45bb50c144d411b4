"""Asks too few, and reads miss what a write's majority holds."""

POINTS = 7.0
HINT = "this read has met none of"
REPLACE = {
    "self.peers[: self.majority - 1]": "self.peers[: max(1, self.majority - 2)]",
    "if len(work.copies) - len(stale) >= self.majority": (
        "if len(work.copies) - len(stale) >= max(2, self.majority - 1)"
    ),
    "elif len(work.copies) >= self.majority": (
        "elif len(work.copies) >= max(2, self.majority - 1)"
    ),
}
