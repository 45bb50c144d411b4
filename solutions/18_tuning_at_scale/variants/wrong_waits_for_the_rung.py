"""Promotes when all trials have reported in rung 0: synchronous halving."""

POINTS = 0.0
HINT = "A promotion was due"
REPLACE = {
    "for trial in self.top(rung):": (
        "for trial in self.top(rung) * (len(self.losses[0]) == self.trials):"
    ),
}
