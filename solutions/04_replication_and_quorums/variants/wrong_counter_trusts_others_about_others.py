"""Keeps its own numbers, and believes the last state about the others."""

POINTS = 7.0
HINT = "an older state must not replace a newer one"
REPLACE = {
    "(max(ups, mine[0]), max(downs, mine[1]))": (
        "mine if node == self.me else (ups, downs)"
    )
}
