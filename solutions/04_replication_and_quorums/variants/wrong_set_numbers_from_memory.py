"""Numbers its adds outside of its state, and from 1 again after a restart."""

POINTS = 6.0
HINT = "An update after the restart is lost"
REPLACE = {
    "seen[self.me] = seen.get(self.me, 0) + 1": (
        "self.last = getattr(self, 'last', 0) + 1\n"
        "            seen[self.me] = self.last"
    )
}
