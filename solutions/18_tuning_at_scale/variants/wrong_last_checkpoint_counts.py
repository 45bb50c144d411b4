"""Goes on from the checkpoint that was saved last, which may be an earlier one."""

POINTS = 8.0
HINT = "the job begins at another step"
REPLACE = {
    "max(step, self.saved.get(trial, 0))": "step",
}
