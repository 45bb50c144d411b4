"""Takes the last loss that is reported."""

POINTS = 4.0
HINT = "A trial has one loss in a rung"
REPLACE = {
    (
        "        if trial not in self.losses[rung]:\n"
        "            super().on_report(trial, rung, loss)"
    ): "        super().on_report(trial, rung, loss)",
}
