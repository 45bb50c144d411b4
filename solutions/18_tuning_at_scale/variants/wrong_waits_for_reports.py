"""Begins a new trial when all that have begun have reported."""

POINTS = 0.0
HINT = "ASHA waits for no rung"
REPLACE = {
    "if self.begun < self.trials:": (
        "if self.begun == len(self.losses[0]) < self.trials:"
    ),
}
