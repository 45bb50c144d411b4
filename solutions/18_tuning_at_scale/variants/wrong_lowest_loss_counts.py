"""Takes the lower of a new and an old loss, and any one in place of NaN."""

POINTS = 4.0
HINT = "A trial has one loss in a rung"
REPLACE = {
    (
        "        if trial not in self.losses[rung]:\n"
        "            super().on_report(trial, rung, loss)"
    ): (
        "        old = self.losses[rung].get(trial, loss)\n"
        "        super().on_report(trial, rung, min(loss, old))"
    ),
}
