"""Counts votes, not voters: a vote that arrives twice counts twice."""

POINTS = 0.0
HINT = "Count each voter once"
REPLACE = {
    "self.votes.add(sender)": "self.votes.add((sender, len(self.votes)))",
}
