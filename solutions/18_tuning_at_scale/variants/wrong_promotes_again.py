"""Notes no promotion, and takes a trial for promoted once it has reported above."""

POINTS = 0.0
HINT = "A trial is promoted once"
REPLACE = {
    "if trial not in self.promoted[rung]:": "if trial not in self.losses[rung + 1]:",
}
