"""Keeps on its disk what is newer than its last acknowledgment."""

POINTS = 4.0
HINT = "How many snapshots does your disk hold"
REPLACE = {
    "yield Send(COORDINATOR, Ack(*token))": (
        "yield Send(COORDINATOR, Ack(*token))\n"
        "        self.snapshots = {n: s for n, s in self.snapshots.items() if n >= token[1]}"
    ),
}
