"""Closes windows by the maximum of the watermarks."""

POINTS = 0.0
HINT = "which of the inputs' watermarks decides"
REPLACE = {
    "closed = min(self.marks": "closed = max(self.marks",
}
