"""Repairs as soon as two copies differ; the newest may still be on its way."""

POINTS = 7.0
HINT = "Reads that meet stale nodes cost too much"
REPLACE = {"elif len(work.copies) >= self.majority:": "else:"}
