"""Fills buckets from the first layer on."""

import torch

POINTS = 0.0
HINT = "This is the order of registration"


def in_buckets(parameters, first_bytes, bucket_bytes):
    buckets, room = [], 0
    for p in parameters:
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
    pass


def overlap(comm, microbatches, total, buckets, all_reduce):
    pass
