"""Waits for the barriers of inputs 1 and 2 alone."""

POINTS = 0.0
HINT = "counted twice, or not at all"
REPLACE = {
    "if len(self.arrived) < len(self.sources):": ("if not {1, 2} <= self.arrived:"),
}
