"""Has the second bias's gradient from its own tokens only."""

POINTS = 7.0
HINT = "from its own tokens"
REPLACE = {
    'CopyToRanks.apply(comm, shard["down.bias"])': 'shard["down.bias"]',
}
