"""Looks at the worker that has sent, and at none that waits."""

POINTS = 0.0
HINT = "others may go on, too"
REPLACE = {
    "        return self.released()\n\n    def released(self):\n": (
        "        return [w for w in self.released() if w == worker]\n\n"
        "    def released(self):\n"
    ),
}
