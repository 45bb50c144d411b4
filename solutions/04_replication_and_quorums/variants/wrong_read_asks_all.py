"""Asks all nodes, where a majority is enough."""

POINTS = 7.0
HINT = "Reads cost too much although nothing is stale"
REPLACE = {"self.peers[: self.majority - 1]": "self.peers"}
