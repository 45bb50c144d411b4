"""Keeps the whole MLP on every rank."""

POINTS = 3.0
HINT = "rows of the first weight"


def shard_of_mlp(comm, mlp):
    return dict(mlp.named_parameters())


def parallel_mlp(comm, shard, x):
    hidden = gelu(linear(x, shard["up.weight"], shard["up.bias"]))
    return linear(hidden, shard["down.weight"], shard["down.bias"])
