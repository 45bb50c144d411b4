"""Keeps the better of two losses of a trial in a rung."""

POINTS = 4.0
HINT = "A trial has one loss in a rung"
REPLACE = {
    (
        "        if trial not in self.losses[rung]:\n"
        "            super().on_report(trial, rung, loss)"
    ): (
        "        old = self.losses[rung].get(trial)\n"
        "        if old is None or loss < old:\n"
        "            super().on_report(trial, rung, loss)"
    ),
}
