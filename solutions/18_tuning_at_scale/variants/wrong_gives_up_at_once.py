"""Gives up a trial when its worker dies."""

POINTS = 4.0
HINT = "when it is lost for the third time"
REPLACE = {
    "if self.times_lost[job] < MOST_TRIES:": "if False:",
}
