"""Sends a follower its whole log again with each command."""

POINTS = 4.0
HINT = "up to which index does the follower hold"
REPLACE = {"self.next[sender] = self.match[sender] + 1": "self.next[sender] = 1"}
