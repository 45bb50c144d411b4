"""Writes its snapshot behind the Sync, which does not cover it."""

POINTS = 4.0
HINT = "began again from another state"
REPLACE = {
    'yield Save("snapshots", self.snapshots)\n        yield Sync((self.attempt, checkpoint))': (
        "yield Sync((self.attempt, checkpoint))\n"
        '        yield Save("snapshots", self.snapshots)'
    ),
}
