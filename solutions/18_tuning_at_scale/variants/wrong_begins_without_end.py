"""Begins one trial more than there are."""

POINTS = 0.0
HINT = "All trials were begun"
REPLACE = {
    "if self.begun < self.trials:": "if self.begun <= self.trials:",
}
