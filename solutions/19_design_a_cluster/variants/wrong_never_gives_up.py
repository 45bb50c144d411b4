"""Answers also where no run would end."""

POINTS = 7.0
HINT = "no interval helps"
REPLACE = {"if lost >= 1:": "if lost == 1:"}
