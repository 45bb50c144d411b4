"""Gives up a trial when its worker dies."""

POINTS = 4.0
HINT = "A lost job goes first"
REPLACE = {
    "if self.times_lost[job] < MOST_TRIES:": "if False:",
}
