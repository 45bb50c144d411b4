"""Rank 0 speaks in its branch, and again after it."""

POINTS = 4.0
HINT = "also past the end of an if"
REPLACE = {
    "if comm.rank > 0:": ("if comm.rank == 0:\n        speak()\n    else:"),
}
