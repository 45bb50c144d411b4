"""Sends a promoted trial to the rung in which it was."""

POINTS = 0.0
HINT = "a promotion goes to the rung above"
REPLACE = {"return trial, rung + 1": "return trial, rung"}
