"""Gives each read an entry of the log, as a write has."""

POINTS = 8.0
HINT = "A read changes nothing"
REPLACE = {
    "return max(self.commit, self.first)": (
        "self.log.append(Entry(self.term))\n        return max(self.commit, self.first)"
    )
}
