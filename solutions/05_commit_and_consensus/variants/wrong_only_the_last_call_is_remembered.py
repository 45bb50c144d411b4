"""Executes a copy of a call that is older than the client's last one."""

POINTS = 8.0
HINT = "also be committed after call 2"
REPLACE = {"(0, None))[0] < number:": ("(0, None))[0] != number:")}
