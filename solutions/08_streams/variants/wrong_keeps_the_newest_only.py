"""Has one snapshot on its disk, the newest."""

POINTS = 4.0
HINT = "How many snapshots does your disk hold"
REPLACE = {
    "self.snapshots[checkpoint] = state\n        yield Save": (
        "self.snapshots = {checkpoint: state}\n        yield Save"
    ),
}
