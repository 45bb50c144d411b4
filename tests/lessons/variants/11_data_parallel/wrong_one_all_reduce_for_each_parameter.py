"""Lays buckets out, and reduces parameter by parameter all the same."""

POINTS = 0.0
HINT = "One all-reduce for each parameter pays its latency each time"


def in_buckets(parameters, first_bytes, bucket_bytes):
    buckets, room = [], 0
    for p in reversed(parameters):
        if not p.requires_grad:
            continue
        if not buckets or buckets[-1][0].dtype != p.dtype or p.nbytes > room:
            room = bucket_bytes if buckets else first_bytes
            buckets.append([])
        buckets[-1].append(p)
        room -= p.nbytes
    return buckets


def average_gradients(comm, buckets, all_reduce):
    for bucket in buckets:
        for p in bucket:
            all_reduce(comm, p.grad)
            p.grad /= comm.world_size


def accumulate(comm, microbatches, total, buckets, all_reduce):
    pass


def overlap(comm, microbatches, total, buckets, all_reduce):
    pass
