"""Parses every line in every step."""

POINTS = 7.0
HINT = "Nothing is kept, so each job"
REPLACE = {
    ").cache()": ")",
}
