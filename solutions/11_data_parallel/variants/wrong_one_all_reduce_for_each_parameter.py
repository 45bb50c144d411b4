"""Lays buckets out, and reduces parameter by parameter all the same."""

POINTS = 4.0
HINT = "A buffer holds the gradients of the parameters of one bucket"


def average_gradients(comm, buckets, all_reduce):
    for bucket in buckets:
        for p in bucket:
            all_reduce(comm, p.grad)
            p.grad /= comm.world_size
