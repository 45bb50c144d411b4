"""Keeps on its disk what is newer than its last acknowledgment."""

POINTS = 4.0
HINT = "How many snapshots does your disk hold"
REPLACE = {
    "yield Send(COORDINATOR, Ack(*token))": (
        "yield Send(COORDINATOR, Ack(*token))\n"
        "        new = [one for one in self.snapshots.items() if one[0] >= token[1]]\n"
        "        self.snapshots = dict(new)"
    ),
}
