"""Takes what ends at a moment to be before what begins at it."""

POINTS = 6.0
HINT = "leave the order open"
REPLACE = {
    "start > first_end:": "start >= first_end and one.end > first_end:",
}
