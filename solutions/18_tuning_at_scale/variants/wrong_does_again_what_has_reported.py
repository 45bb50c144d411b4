"""Does a lost job again, also if it has reported meanwhile."""

POINTS = 4.0
HINT = "This job has reported already"
REPLACE = {
    (
        "            if trial not in self.losses[rung]:\n"
        "                return trial, rung"
    ): "            return trial, rung",
}
