"""Stays the leader when there is a higher term."""

POINTS = 0.0
HINT = "A higher term ends what this node was"
REPLACE = {
    "self.role, self.leader = FOLLOWER, None": (
        "self.role = LEADER if self.role == LEADER else FOLLOWER"
    )
}
