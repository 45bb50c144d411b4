"""Lists an item once for each of its adds."""

POINTS = 6.0
HINT = "each once"
REPLACE = {"sorted(set(self.state[0].values()))": "sorted(self.state[0].values())"}
