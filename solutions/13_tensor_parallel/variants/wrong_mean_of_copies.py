"""Averages over the copies, as data parallelism would."""

POINTS = 7.0
HINT = "the sum over the ranks that have a copy"
REPLACE = {
    'weights = shard["q.weight"], k, v': (
        "k, v = (w / copies + (w - w / copies).detach() for w in (k, v))\n"
        '    weights = shard["q.weight"], k, v'
    )
}
