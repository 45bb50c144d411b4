"""Numbers new trials from 1 on."""

POINTS = 0.0
HINT = "The number of the new trial"
REPLACE = {"return self.begun - 1, 0": "return self.begun, 0"}
