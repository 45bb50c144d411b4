"""Takes its snapshot when the first barrier comes."""

POINTS = 0.0
HINT = "when the last barrier comes"
REPLACE = {
    "if len(self.arrived) < len(self.sources):": (
        "if len(self.arrived) == 1:\n"
        "            self.early = self.state()\n"
        "        if len(self.arrived) < len(self.sources):"
    ),
    "yield from self.save(checkpoint, self.state())": (
        "yield from self.save(checkpoint, self.early)"
    ),
}
