"""Sends each request for a vote twice, in case that one is dropped."""

POINTS = 8.0
HINT = "are all it takes"
REPLACE = {"for peer in self.peers:": "for peer in (*self.peers, *self.peers):"}
