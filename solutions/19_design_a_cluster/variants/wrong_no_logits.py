"""Looks at the first stage alone, and leaves the logits of the last out."""

POINTS = 6.0
HINT = "something for the logits"
REPLACE = {"max(first, last)": "first"}
