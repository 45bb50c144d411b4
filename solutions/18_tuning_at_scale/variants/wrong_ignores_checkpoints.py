"""Trains a lost job from the end of the rung below."""

POINTS = 8.0
HINT = "the job begins at another step"
REPLACE = {
    "return max(below, self.saved.get(trial, 0))": "return below",
}
