"""A partition function of its own, for which all keys are alike."""

POINTS = 6.0
HINT = "place a key if nobody tells it"
REPLACE = {
    "(partitions)": "(partitions, lambda key: 0)",
}
