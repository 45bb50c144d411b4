"""Leaves the inputs blocked when the checkpoint is aligned."""

POINTS = 0.0
HINT = "What do you do with it then"
REPLACE = {
    "held, self.arrived, self.held = self.held, set(), []": (
        "held, self.held = self.held, []"
    ),
}
