"""Whoever does not send receives, in every round."""

POINTS = 7.0
HINT = "or has nothing to do"
REPLACE = {
    "elif rank < 2 * distance": "else",
}
