"""Sends a NaN like any other element."""

POINTS = 6.0
HINT = "Every rank looks at all codes"
REPLACE = {
    "if not each.isfinite().all():": "if False:",
}
