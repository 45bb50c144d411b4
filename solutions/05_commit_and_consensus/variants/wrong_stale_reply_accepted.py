"""Takes a response of an earlier term for one of this term."""

POINTS = 4.0
HINT = "Of which term is this response"
REPLACE = {
    "if self.role != LEADER or reply.term != self.term:": "if self.role != LEADER:"
}
