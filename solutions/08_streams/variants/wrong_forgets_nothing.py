"""Keeps the snapshots of all checkpoints."""

POINTS = 8.0
HINT = "old snapshots, or windows"
REPLACE = {
    "if n >= checkpoint}": "if n >= 0}",
}
