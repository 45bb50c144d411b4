"""Has the library decide on votes, which the processes of the check lack."""

POINTS = 0.0
HINT = "the protocol itself is the exercise"
REPLACE = {
    "free = self.voted_for in (None, candidate)": (
        "from distlab.agree.raft import Raft\n"
        "        free = Raft(self.me, self.peers).may_vote(candidate, request)"
    )
}
