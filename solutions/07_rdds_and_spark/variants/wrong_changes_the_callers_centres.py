"""Puts new centres into the list that it was given."""

POINTS = 7.0
HINT = "into a list of your own"
REPLACE = {
    "list(centres)": "centres",
}
