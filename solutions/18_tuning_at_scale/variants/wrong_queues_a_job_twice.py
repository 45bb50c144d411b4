"""Puts a job into the list twice if two messages report its worker's death."""

POINTS = 4.0
HINT = "it stands in `self.lost` once"
REPLACE = {
    "if job in self.lost or trial in self.losses[rung]:": (
        "if trial in self.losses[rung]:"
    ),
}
