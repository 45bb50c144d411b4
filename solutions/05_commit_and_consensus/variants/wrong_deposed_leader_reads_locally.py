"""Answers a read at once, and does not ask whether it leads still."""

POINTS = 8.0
HINT = "a majority must say that this node leads still"
REPLACE = {
    "return heard >= self.majority and self.applied >= read.index": (
        "return self.applied >= read.index"
    )
}
