"""Keeps its own sums beside its state, and from 0 again after a restart."""

POINTS = 7.0
HINT = "An update after the restart is lost"
REPLACE = {
    "ups, downs = self.state.get(self.me, (0, 0))": (
        "ups, downs = getattr(self, 'own', (0, 0))"
    ),
    "self.state[self.me] = (ups, downs)": (
        "self.own = self.state[self.me] = (ups, downs)"
    ),
}
