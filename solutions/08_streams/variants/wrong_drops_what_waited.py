"""Drops what a blocked input has sent."""

POINTS = 0.0
HINT = "What do you do with it then"
REPLACE = {
    "self.held.append((source, message))\n": ("pass\n"),
}
