"""Never sends a repair again that was dropped."""

POINTS = 7.0
HINT = "an answer may be dropped"
REPLACE = {"work.repaired.clear()\n        ": ""}
