"""Takes a loss of 0.0 for none."""

POINTS = 8.0
HINT = "A worker asks whether its job"
REPLACE = {
    (
        "    def wanted(self, trial, rung):\n"
        "        return trial not in self.losses[rung]"
    ): (
        "    def wanted(self, trial, rung):\n"
        "        return not self.losses[rung].get(trial)"
    ),
}
