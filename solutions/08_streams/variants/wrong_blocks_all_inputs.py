"""Holds back all records from the first barrier on, and sorts them at the last."""

POINTS = 8.0
HINT = "waits for a barrier that it does not need"
REPLACE = {
    "elif type(message) is Records:\n            yield": (
        "elif type(message) is Records and self.arrived:\n"
        "            self.before.append((source, message))\n"
        "        elif type(message) is Records:\n"
        "            yield"
    ),
    "self.restore(self.snapshots": (
        "self.before = []\n        self.restore(self.snapshots"
    ),
    "yield Send(COORDINATOR, Barrier(self.attempt, checkpoint))": (
        "before, self.before = self.before, []\n"
        "        for one in before:\n"
        "            yield from self.on_records(*one)\n"
        "        yield Send(COORDINATOR, Barrier(self.attempt, checkpoint))"
    ),
}
