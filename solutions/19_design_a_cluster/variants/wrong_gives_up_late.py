"""Gives up only where the recovery alone takes longer than the time to a failure."""

POINTS = 7.0
HINT = "Where failures come faster than a restart"
REPLACE = {"if lost >= 1:": "if recovery_s >= between_s:"}
