"""Counts votes that were granted in an earlier term."""

POINTS = 0.0
HINT = "only votes of this term"
REPLACE = {
    "if self.role == CANDIDATE and vote.term == self.term and vote.granted:": (
        "if self.role == CANDIDATE and vote.granted:"
    )
}
