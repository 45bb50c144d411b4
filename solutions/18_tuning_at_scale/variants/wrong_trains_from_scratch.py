"""Trains a promoted trial from its first step."""

POINTS = 8.0
HINT = "the job begins at another step"
REPLACE = {
    "return max(below, self.saved.get(trial, 0))": "return 0",
}
