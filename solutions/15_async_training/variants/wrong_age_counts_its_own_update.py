"""Counts the gradient's own update as one that came between."""

POINTS = 3.0
HINT = "An age is how many updates came between"
REPLACE = {
    "        self.ages.append(self.version - version)\n": "",
    "        self.version += 1\n": (
        "        self.version += 1\n        self.ages.append(self.version - version)\n"
    ),
}
