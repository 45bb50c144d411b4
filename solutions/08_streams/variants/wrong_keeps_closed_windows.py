"""Keeps the counts of closed windows in its state, to send each once."""

POINTS = 8.0
HINT = "windows that are closed"
REPLACE = {
    "if place[0] <= closed:\n                count = self.counts.pop(place)": (
        "if place[0] <= closed and (count := self.counts[place]):\n"
        "                self.counts[place] = 0"
    ),
}
