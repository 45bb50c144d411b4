"""Asks for the slowest worker when there is none."""

POINTS = 4.0
HINT = "The last worker has left"
REPLACE = {"min(self.clocks.values(), default=0)": "min(self.clocks.values())"}
