"""Begins an attempt with no watermarks."""

POINTS = 0.0
HINT = "does not send it"
REPLACE = {
    "return dict(self.counts), dict(self.marks)": ("return dict(self.counts), {}"),
}
