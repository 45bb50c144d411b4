"""Leaves inputs blocked, and messages waiting, in a new attempt."""

POINTS = 0.0
HINT = "counts and watermarks of the old one are all void"
REPLACE = {
    "self.attempt, self.arrived, self.held = deploy.attempt, set(), []": (
        "self.attempt = deploy.attempt\n"
        "        if self.attempt == 1:\n"
        "            self.arrived, self.held = set(), []"
    ),
}
