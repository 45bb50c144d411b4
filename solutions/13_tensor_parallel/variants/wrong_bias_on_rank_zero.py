"""Adds the second bias to the partial output of rank 0 only."""

POINTS = 3.0
HINT = "doesn't use the bias"
REPLACE = {
    'partial = linear(hidden, shard["down.weight"])\n    return SumOverRanks.apply('
    'comm, partial) + shard["down.bias"]': (
        'bias = None if comm.rank else shard["down.bias"]\n'
        '    partial = linear(hidden, shard["down.weight"], bias)\n'
        "    return SumOverRanks.apply(comm, partial)"
    )
}
