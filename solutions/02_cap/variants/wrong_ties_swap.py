"""Lets what arrives replace an equal version, so that two nodes swap for ever."""

POINTS = 7.0
HINT = "versions that are equal"
REPLACE = {", self.me)": ", 0)"}
