"""Returns while workers compute, and nobody takes their gradients."""

POINTS = 7.0
HINT = "is told -1, once"
REPLACE = {"        if not computing:\n": "        if over or not computing:\n"}
