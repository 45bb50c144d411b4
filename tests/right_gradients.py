"""A right average of gradients in buckets, of which tests make wrong ones."""

import torch


def flat(bucket):
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
    return torch.cat([part.flatten() for part in parts])


def hand_out(bucket, buffer, divisor):
    pieces = buffer.split([p.numel() for p in bucket])
    for p, piece in zip(bucket, pieces, strict=True):
        p.grad = (piece / divisor).view_as(p)


def in_buckets(parameters, first_bytes, bucket_bytes):
    buckets, room = [], 0
    for p in [p for p in reversed(parameters) if p.requires_grad]:
        if not buckets or buckets[-1][0].dtype != p.dtype or p.nbytes > room:
            room = bucket_bytes if buckets else first_bytes
            buckets.append([])
        buckets[-1].append(p)
        room -= p.nbytes
    return buckets


def average(comm, buckets, all_reduce):
    for bucket in buckets:
        buffer = flat(bucket)
        all_reduce(comm, buffer)
        hand_out(bucket, buffer, comm.world_size)
