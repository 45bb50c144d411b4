"""Notes what its followers hold, and commits nothing."""

POINTS = 4.0
HINT = "up to which index does the follower hold"
REPLACE = {
    "yield from self.commit_up_to(max(filter(self.may_commit, new), default=0))": (
        "yield from ()"
    )
}
