"""Writes its snapshot behind the Sync, which does not cover it."""

POINTS = 4.0
HINT = "began again from another state"
REPLACE = {
    'yield Save("snapshots"': 'save = Save("snapshots"',
    "yield Sync((self.attempt, checkpoint))": (
        "yield Sync((self.attempt, checkpoint))\n        yield save"
    ),
}
