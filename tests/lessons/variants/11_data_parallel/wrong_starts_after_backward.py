"""Starts everything at once, when backward has ended."""

import torch

POINTS = 6.0
HINT = "What could be started there"


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


def pack(bucket):
    return flat([torch.zeros_like(p) if p.grad is None else p.grad for p in bucket])


def unpack(bucket, buffer, world_size):
    for p, piece in zip(bucket, views(buffer, bucket), strict=True):
        p.grad = piece / world_size


def average_gradients(comm, buckets, all_reduce):
    for bucket in buckets:
        buffer = pack(bucket)
        all_reduce(comm, buffer)
        unpack(bucket, buffer, comm.world_size)


def accumulate(comm, microbatches, total, buckets, all_reduce):
    for forward, count in microbatches:
        backward(comm, forward() * count * comm.world_size / total)
    average_gradients(comm, buckets, all_reduce)


def overlap(comm, microbatches, total, buckets, all_reduce):
    for forward, count in microbatches:
        backward(comm, forward() * count * comm.world_size / total)
    buffers = [pack(bucket) for bucket in buckets]
    requests = [comm.start(all_reduce, buffer) for buffer in buffers]
    for bucket, buffer, request in zip(buckets, buffers, requests, strict=True):
        request.wait()
        unpack(bucket, buffer, comm.world_size)
