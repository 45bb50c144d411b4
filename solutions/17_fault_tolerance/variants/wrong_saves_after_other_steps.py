"""Saves after step 1, then after every job.every-th step from there."""

POINTS = 3.0
HINT = "What does your condition give for step 1"
REPLACE = {"== 0:\n            save(comm": "== 1 % job.every:\n            save(comm"}
