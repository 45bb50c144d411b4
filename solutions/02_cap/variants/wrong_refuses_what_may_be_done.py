"""Refuses every call that has not been answered in time."""

POINTS = 6.0
HINT = "and then a client read it"
REPLACE = {
    'if work.kept is None or work.call.op == "read":': "if True:",
}
