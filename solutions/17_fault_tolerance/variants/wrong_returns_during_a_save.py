"""Returns while the last save still goes on."""

POINTS = 7.0
HINT = "What may still be on its way when your function returns?"
REPLACE = {"    if saving:\n        saving.wait()\n    return": "    return"}
