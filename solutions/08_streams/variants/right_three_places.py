"""Writes a snapshot to a place that no checkpoint needs, once, and again when it is done."""

POINTS = 12.0
HINT = ""
REPLACE = {
    'self.snapshots[checkpoint] = state\n        yield Save("snapshots", self.snapshots)': (
        "kept = self.snapshots\n"
        '        used = {kept[n][0] for n in sorted(kept) if n >= getattr(self, "done", 0)}\n'
        "        place = next(p for p in range(99) if p not in used)\n"
        "        for n in [n for n in kept if kept[n][0] == place]:\n"
        "            del kept[n]\n"
        "        kept[checkpoint] = place, state\n"
        '        yield Save(f"place {place}", (checkpoint, state))'
    ),
    'self.snapshots = saved.get("snapshots", {})': (
        "for name, (n, state) in saved.items():\n"
        "            self.snapshots[n] = int(name.split()[1]), state"
    ),
    "kept = {n: state for n, state in self.snapshots.items() if n >= checkpoint}\n        self.snapshots = kept": (
        "self.done = checkpoint"
    ),
    "counts, marks = self.snapshots.get(deploy.checkpoint, ({}, {}))": (
        "found = self.snapshots.get(deploy.checkpoint, ({}, {}))\n"
        "        counts, marks = found if type(found[0]) is dict else found[1]\n"
        "        self.done = deploy.checkpoint"
    ),
}
