"""Answers a write with the value that was written."""

POINTS = 6.0
HINT = "A write has no value to tell"
REPLACE = {"work.kept.value if is_read else None": "work.kept.value"}
