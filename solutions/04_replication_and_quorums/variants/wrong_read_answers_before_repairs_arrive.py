"""Sends the repairs and answers at once."""

POINTS = 7.0
HINT = "An earlier read returned a value that too few nodes"
REPLACE = {
    "if len(work.copies) - len(stale) >= self.majority:": (
        "if len(work.copies) >= self.majority:\n"
        "            yield from self.repair(request, sorted(stale), newest)"
    )
}
