"""Waits when it is as far ahead as the bound allows."""

POINTS = 0.0
HINT = "at most `bound` above the smallest"
REPLACE = {"self.clocks[worker] <= most": "self.clocks[worker] < most"}
