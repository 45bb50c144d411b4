"""Asks the nodes after it, sends the repairs and answers at once."""

POINTS = 7.0
HINT = "An earlier read returned a value that too few nodes"
REPLACE = {
    "self.peers[: self.majority - 1]": (
        "sorted(self.peers, key=lambda n: (n < self.me, n))[: self.majority - 1]"
    ),
    "if len(work.copies) - len(stale) >= self.majority:": (
        "if len(work.copies) >= self.majority:\n"
        "            yield from self.repair(request, sorted(stale), newest)"
    ),
}
