"""Takes a gradient for the news that its worker is back."""

POINTS = 7.0
HINT = "A worker that has left takes no part"
REPLACE = {
    "        if worker not in self.clocks:\n            return []\n": (
        "        self.clocks.setdefault(worker, 0)\n"
    ),
}
