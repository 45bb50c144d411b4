"""Gradients are views of buffers from the start, so nothing is packed or unpacked."""

import torch

POINTS = 10.0
HINT = ""


def in_buckets(parameters, first_bytes, bucket_bytes):
    buckets = []
    for p in parameters[::-1]:
        limit = bucket_bytes if len(buckets) > 1 else first_bytes
        if not p.requires_grad:
            continue
        size = sum(other.nbytes for other in buckets[-1]) if buckets else 0
        same = bool(buckets) and {other.dtype for other in buckets[-1]} == {p.dtype}
        if same and size + p.nbytes <= limit:
            buckets[-1].append(p)
        else:
            buckets.append([p])
    return buckets


def viewed(bucket):
    buffer = flat([torch.zeros_like(p) for p in bucket])
    for p, piece in zip(bucket, views(buffer, bucket), strict=True):
        if p.grad is not None:
            piece.copy_(p.grad)
        p.grad = piece
    return buffer


def average_gradients(comm, buckets, all_reduce):
    for buffer in map(viewed, buckets):
        buffer /= comm.world_size
        all_reduce(comm, buffer)


def accumulate(comm, microbatches, total, buckets, all_reduce):
    for forward, count in microbatches:
        (forward() * (count / total)).backward()
    for buffer in map(viewed, buckets):
        all_reduce(comm, buffer)


def overlap(comm, microbatches, total, buckets, all_reduce):
    buffers = [viewed(bucket) for bucket in buckets]
    left = [len(bucket) * len(microbatches) for bucket in buckets]
    requests = []

    def start_while(full):
        while len(requests) < len(buckets) and full(len(requests)):
            requests.append(comm.start(all_reduce, buffers[len(requests)]))

    def hook_of(number):
        def hook(p):
            left[number] -= 1
            start_while(lambda number: left[number] == 0)

        return hook

    hooks = [
        p.register_post_accumulate_grad_hook(hook_of(number))
        for number, bucket in enumerate(buckets)
        for p in bucket
    ]
    for forward, count in microbatches:
        (forward() * (count / total)).backward()
    [hook.remove() for hook in hooks]
    start_while(lambda number: True)
    [request.wait() for request in requests]
