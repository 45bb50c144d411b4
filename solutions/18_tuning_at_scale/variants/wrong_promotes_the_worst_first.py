"""Promotes the worst trial of a rung's top first."""

POINTS = 0.0
HINT = "the best one goes first"
REPLACE = {"for trial in self.top(rung):": "for trial in reversed(self.top(rung)):"}
