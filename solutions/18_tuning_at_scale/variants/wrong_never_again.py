"""Forgets lost jobs."""

POINTS = 4.0
HINT = "A lost job goes first"
REPLACE = {
    "            self.lost.append(job)": "            pass",
}
