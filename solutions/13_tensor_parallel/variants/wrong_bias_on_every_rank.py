"""Adds the second bias to each partial output."""

POINTS = 3.0
HINT = "What grows with n"
REPLACE = {
    'partial = linear(hidden, shard["down.weight"])\n    return SumOverRanks.apply('
    'comm, partial) + shard["down.bias"]': (
        'partial = linear(hidden, shard["down.weight"], shard["down.bias"])\n'
        "    return SumOverRanks.apply(comm, partial)"
    )
}
