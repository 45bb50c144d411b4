"""Puts a job into the lost ones that has reported."""

POINTS = 4.0
HINT = "The rung has a loss of this trial"
REPLACE = {
    "if job in self.lost or trial in self.losses[rung]:": "if job in self.lost:",
}
