"""Sends a follower its whole log again with each command."""

POINTS = 8.0
HINT = "sent again what it holds"
REPLACE = {"self.next[sender] = self.match[sender] + 1": "self.next[sender] = 1"}
