"""Replaces all that follows, so that a late message takes entries away."""

POINTS = 4.0
HINT = "Only a conflict removes entries"
REPLACE = {"if self.term_at(at) != entry.term:": "if self.term_at(at):"}
