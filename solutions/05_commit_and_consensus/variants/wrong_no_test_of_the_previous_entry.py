"""Takes entries that begin within its log, without a look at the entry before."""

POINTS = 4.0
HINT = "an induction"
REPLACE = {
    "return self.term_at(previous) == previous_term": "return previous <= self.last"
}
