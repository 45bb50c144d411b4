"""Averages after each microbatch."""

POINTS = 7.0
HINT = "Until the last microbatch gradients only add up"


def accumulate(comm, microbatches, total, buckets, all_reduce):
    for forward, count in microbatches:
        backward(comm, forward() * count * comm.world_size / total)
        average_gradients(comm, buckets, all_reduce)
