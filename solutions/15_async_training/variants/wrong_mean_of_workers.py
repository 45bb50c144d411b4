"""Divides by the number of workers, as a synchronous server does."""

POINTS = 0.0
HINT = "Each gradient is one update"
REPLACE = {"self.rate * gradient": "self.rate * gradient / len(self.clocks)"}
