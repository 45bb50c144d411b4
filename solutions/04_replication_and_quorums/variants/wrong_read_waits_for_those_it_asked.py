"""Asks the same nodes again, which may be cut off."""

POINTS = 7.0
HINT = "Who was asked"
REPLACE = {"set(self.peers) - work.copies.keys()": "self.peers[: self.majority - 1]"}
