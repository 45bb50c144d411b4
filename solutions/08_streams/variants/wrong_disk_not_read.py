"""Begins with no snapshots after a restart."""

POINTS = 4.0
HINT = "what do you make of them in on_start"
REPLACE = {
    'self.snapshots = saved.get("snapshots", {})': "self.snapshots = {}",
}
