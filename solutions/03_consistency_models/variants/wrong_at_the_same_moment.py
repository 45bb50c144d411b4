"""Takes what ends at a moment to be before what begins at it."""

POINTS = 6.0
HINT = "Nobody can say which was first"
REPLACE = {
    "start > first_end:": "start >= first_end and one.end > first_end:",
}
