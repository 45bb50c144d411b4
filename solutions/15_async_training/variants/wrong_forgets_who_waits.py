"""After the last update answers those who send, and not those held back."""

POINTS = 7.0
HINT = "is told -1, once"
REPLACE = {
    "for worker in list(waiting) if over else ready:": (
        "for worker in [worker] if over and worker in waiting else ready:"
    ),
}
