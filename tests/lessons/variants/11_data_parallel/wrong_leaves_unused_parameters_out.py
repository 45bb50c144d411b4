"""Packs only the gradients that are there, so that ranks send different lengths."""

import torch

POINTS = 3.0
HINT = "A buffer holds the gradients of the parameters of one bucket"


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
        used = [p for p in bucket if p.grad is not None]
        buffer = flat([torch.zeros(0), *[p.grad for p in used]])
        all_reduce(comm, buffer)
        for p, piece in zip(used, views(buffer, used), strict=True):
            p.grad = piece / comm.world_size


def accumulate(comm, microbatches, total, buckets, all_reduce):
    for forward, count in microbatches:
        backward(comm, forward() * count * comm.world_size / total)
    average_gradients(comm, buckets, all_reduce)


def overlap(comm, microbatches, total, buckets, all_reduce):
    pass
