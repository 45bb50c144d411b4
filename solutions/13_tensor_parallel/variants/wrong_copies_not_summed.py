"""Leaves each copy of a key-value head the gradient of its own query heads."""

POINTS = 7.0
HINT = "the sum over the ranks that have a copy"
REPLACE = {
    'k, v = (CopyToRanks.apply(sharing, shard[f"{name}.weight"]) for name in "kv")': (
        'k, v = shard["k.weight"], shard["v.weight"]'
    )
}
