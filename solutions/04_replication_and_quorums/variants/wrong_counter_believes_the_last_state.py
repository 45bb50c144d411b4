"""Takes each replica's numbers from the last state, which may be an old one."""

POINTS = 7.0
HINT = "an older state must not replace a newer one"
REPLACE = {"(max(ups, mine[0]), max(downs, mine[1]))": "(ups, downs)"}
