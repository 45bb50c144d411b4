"""Applies f to the gathered sequence, whose gradient a reduce-scatter sums too."""

POINTS = 7.0
HINT = "it was summed over ranks twice"
REPLACE = {
    "x = GatherSequence.apply(comm, x)": (
        "x = CopyToRanks.apply(comm, GatherSequence.apply(comm, x))"
    )
}
