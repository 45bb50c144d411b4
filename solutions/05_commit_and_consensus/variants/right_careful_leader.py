"""Counts its own entries like a peer's, and reads only after its first commit."""

POINTS = 12.0
HINT = ""
REPLACE = {
    "holders = 1 + sum(match >= index for match in self.match.values())": (
        "holders = len([n for n in (self.me, *self.peers) if n == self.me"
        " or self.match[n] >= index])"
    ),
    "return max(self.commit, self.first)": (
        "return self.commit if self.commit > self.first else self.first"
    ),
    "heard = 1 + sum(round >= read.round for round in self.acked.values())": (
        "heard = len([n for n in self.peers if self.acked.get(n, 0) >= read.round]) + 1"
    ),
    "return self.term, self.voted_for, self.log": (
        "return [self.term, self.voted_for, [tuple(entry) for entry in self.log]]"
    ),
    "self.term, self.voted_for, self.log = saved": (
        "self.term, self.voted_for, log = saved\n"
        "        self.log = [Entry(*entry) for entry in log]"
    ),
}
