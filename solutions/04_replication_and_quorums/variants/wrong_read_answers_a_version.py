"""Answers a read with the number of the newest copy."""

POINTS = 7.0
HINT = "the value of the newest copy"
REPLACE = {"self.answer(request, newest.value)": "self.answer(request, newest.version)"}
