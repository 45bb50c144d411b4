"""Shuffles first, and combines when all has crossed the network."""

POINTS = 6.0
HINT = "Every pair crosses the network as it is"
REPLACE = {
    "mapPartitions(combine).": "",
}
