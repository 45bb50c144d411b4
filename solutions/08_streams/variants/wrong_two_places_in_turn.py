"""Writes its snapshots to two places in turn, by the number of the checkpoint."""

POINTS = 4.0
HINT = "which one does a new one replace"
REPLACE = {
    'yield Save("snapshots", self.snapshots)': (
        'yield Save(f"place {checkpoint % 2}", (checkpoint, state))'
    ),
    'self.snapshots = saved.get("snapshots", {})': (
        "self.snapshots = dict(saved.values())"
    ),
}
