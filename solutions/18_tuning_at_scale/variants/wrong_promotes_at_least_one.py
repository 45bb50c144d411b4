"""Promotes one of two, although eta is 3."""

POINTS = 0.0
HINT = "none of two, if eta is 3"
REPLACE = {
    "real[: len(losses) // self.eta]": "real[: max(1, len(losses) // self.eta)]",
}
