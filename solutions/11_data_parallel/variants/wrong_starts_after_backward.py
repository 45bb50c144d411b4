"""Starts everything at once, when backward has ended."""

POINTS = 6.0
HINT = "What could be started there"


def overlap(comm, microbatches, total, buckets, all_reduce):
    for forward, count in microbatches:
        backward(comm, forward() * count * comm.world_size / total)
    buffers = [pack(bucket) for bucket in buckets]
    requests = [comm.start(all_reduce, buffer) for buffer in buffers]
    for bucket, buffer, request in zip(buckets, buffers, requests, strict=True):
        request.wait()
        unpack(bucket, buffer, comm.world_size)
