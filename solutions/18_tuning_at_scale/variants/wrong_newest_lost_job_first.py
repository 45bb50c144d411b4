"""Gives out the job first that was lost last."""

POINTS = 4.0
HINT = "A lost job goes first"
REPLACE = {
    "self.lost.pop(0)": "self.lost.pop()",
}
