"""Returns no step for a trial without a checkpoint."""

POINTS = 8.0
HINT = "the step at which a job begins, a whole number"
REPLACE = {
    "return max(below, self.saved.get(trial, 0))": (
        "if trial in self.saved:\n            return max(below, self.saved[trial])"
    ),
}
