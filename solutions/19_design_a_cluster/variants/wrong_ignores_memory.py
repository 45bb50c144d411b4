"""Takes the fastest of all, also of those that do not fit."""

POINTS = 7.0
HINT = "does not fit in a GPU"
REPLACE = {'if layout["memory"] <= room:': "if room > 0:"}
