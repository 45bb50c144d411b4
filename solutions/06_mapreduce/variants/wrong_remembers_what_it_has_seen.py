"""Gives a line once for each process, also if its task is tried again."""

POINTS = 7.0
HINT = "What a function remembers from one call to the next"
REPLACE = {
    "if line.strip():": (
        "if line.strip() and (name, line) not in SEEN:\n        SEEN.add((name, line))"
    ),
}

SEEN = set()
