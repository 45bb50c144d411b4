"""Promotes those in the first third to report."""

POINTS = 0.0
HINT = "behind the bar"
REPLACE = {
    "for trial in self.top(rung):": (
        "for trial in list(self.losses[rung])[: len(self.top(rung))]:"
    ),
}
