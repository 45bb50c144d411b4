"""Nothing is ever removed."""

POINTS = 4.0
HINT = "Older saves are still there"
REPLACE = {"disk.remove(name)": "pass"}
