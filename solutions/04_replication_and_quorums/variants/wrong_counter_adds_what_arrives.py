"""Adds up the sums that arrive, so that each message counts again."""

POINTS = 7.0
HINT = "Adds are counted more than once"
REPLACE = {
    "(max(ups, mine[0]), max(downs, mine[1]))": "(ups + mine[0], downs + mine[1])"
}
