"""Those who wait go on waiting for a worker that is dead."""

POINTS = 4.0
HINT = "The slowest worker may be the one that left"
REPLACE = {"        self.clocks.pop(worker, None)\n": ""}
