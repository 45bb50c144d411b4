"""Has the library choose, which the processes of the check lack."""

POINTS = 0.0
HINT = "the algorithm itself is the exercise"
REPLACE = {
    "        for rung in range(len(self.rungs) - 2, -1, -1):": (
        "        from distlab.tune import promote\n"
        "\n"
        "        promote(self.losses[0], self.eta)\n"
        "        for rung in range(len(self.rungs) - 2, -1, -1):"
    ),
}
