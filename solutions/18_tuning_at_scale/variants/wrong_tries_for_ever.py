"""Never gives up a job that kills its workers."""

POINTS = 4.0
HINT = "This job was lost three times"
REPLACE = {
    "if self.times_lost[job] < MOST_TRIES:": "if True:",
}
