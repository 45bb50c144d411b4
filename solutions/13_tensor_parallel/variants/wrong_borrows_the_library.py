"""Calls the library's operators."""

from distlab.train import tensor_parallel as theirs

POINTS = 3.0
HINT = "distlab's own is not available here"
REPLACE = {
    'SumOverRanks.apply(comm, partial) + shard["down.bias"]': (
        'theirs.reduce_from_ranks(comm, partial) + shard["down.bias"]'
    )
}
