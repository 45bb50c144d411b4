"""Has a later report take the place of the NaN of a trial that was given up."""

POINTS = 4.0
HINT = "A trial has one loss in a rung"
REPLACE = {
    (
        "        if trial not in self.losses[rung]:\n"
        "            super().on_report(trial, rung, loss)"
    ): (
        "        if math.isnan(self.losses[rung].get(trial, math.nan)):\n"
        "            super().on_report(trial, rung, loss)"
    ),
}
