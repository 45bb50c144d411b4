"""Takes a job for lost that has reported, and its loss for NaN after three."""

POINTS = 4.0
HINT = "This job has reported already"
REPLACE = {
    "if job in self.lost or trial in self.losses[rung]:": "if job in self.lost:",
    (
        "            if trial not in self.losses[rung]:\n"
        "                return trial, rung"
    ): "            return trial, rung",
}
