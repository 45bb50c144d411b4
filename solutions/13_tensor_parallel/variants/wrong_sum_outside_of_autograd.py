"""Sums partial outputs with a collective that autograd does not see."""

POINTS = 3.0
HINT = "The graph ends"
REPLACE = {
    'SumOverRanks.apply(comm, partial) + shard["down.bias"]': (
        'summed(comm, partial) + shard["down.bias"]'
    )
}
