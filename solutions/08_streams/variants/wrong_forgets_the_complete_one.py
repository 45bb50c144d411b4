"""Forgets a checkpoint when it is complete."""

POINTS = 8.0
HINT = "Checkpoint n itself may be"
REPLACE = {
    "if n >= checkpoint}": "if n > checkpoint}",
}
