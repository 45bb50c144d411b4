"""Promotes when all trials have reported in rung 0: synchronous halving."""

POINTS = 0.0
HINT = "this is not the first"
REPLACE = {
    "for trial in self.top(rung):": (
        "for trial in self.top(rung) * (len(self.losses[0]) == self.trials):"
    ),
}
