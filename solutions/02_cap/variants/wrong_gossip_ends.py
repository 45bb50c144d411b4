"""Gossips fifty times, and is silent when a longer partition ends."""

POINTS = 7.0
HINT = "After the partition no node sends"
REPLACE = {
    "yield from self.on_start({})": (
        "self.rounds = getattr(self, 'rounds', 0) + 1\n"
        "        if self.rounds < 50:\n"
        "            yield from self.on_start({})"
    ),
}
