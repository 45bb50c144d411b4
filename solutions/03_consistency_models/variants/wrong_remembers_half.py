"""Remembers what is done, and not what the register holds."""

POINTS = 7.0
HINT = "the same operations with another value"
REPLACE = {
    "if (done, value) in": "if done in",
    "((done, value)": "(done",
}
