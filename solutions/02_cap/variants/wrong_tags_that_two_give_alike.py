"""Numbers the adds of each node from one."""

POINTS = 7.0
HINT = "that have the same tag"
REPLACE = {
    "[request]": "[len(self.adds) + 1]",
}
