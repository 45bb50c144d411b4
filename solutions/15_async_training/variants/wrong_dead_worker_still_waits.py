"""Forgets the dead worker's clock, but not that it waits."""

POINTS = 7.0
HINT = "A worker that has left takes no part"
REPLACE = {"        self.waiting.discard(worker)\n": ""}
