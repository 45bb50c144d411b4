"""Waits anew after each request for a vote, also one that it refuses."""

POINTS = 0.0
HINT = "a request that is refused does not"
REPLACE = {
    "granted = self.may_vote(sender, request)": (
        "granted = self.may_vote(sender, request)\n        yield self.election_timer()"
    )
}
