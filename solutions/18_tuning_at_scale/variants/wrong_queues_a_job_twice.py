"""Puts a job into the list twice if two messages report its worker's death."""

POINTS = 4.0
HINT = "A lost job goes first"
REPLACE = {
    "if job in self.lost or trial in self.losses[rung]:": (
        "if trial in self.losses[rung]:"
    ),
}
