"""Goes on from a checkpoint alone; a report is none here."""

POINTS = 8.0
HINT = "the job begins at another step"
REPLACE = {
    "return max(below, self.saved.get(trial, 0))": "return self.saved.get(trial, 0)",
}
