"""Takes the best third of those that are no NaN."""

POINTS = 0.0
HINT = "NaN counts among the n"
REPLACE = {
    "len(losses) // self.eta]": "len(real) // self.eta]",
}
