"""Takes what belongs to an old attempt."""

POINTS = 0.0
HINT = "of an attempt that is over"
REPLACE = {
    "if message.attempt != self.attempt:\n            return\n        if": "if",
}
