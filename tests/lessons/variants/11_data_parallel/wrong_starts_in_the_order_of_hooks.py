"""Starts whichever bucket is full, in an order that differs between ranks."""

from itertools import chain

import torch

POINTS = 6.0
HINT = "all-reduces meet in the order of starting"


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
    missing = dict.fromkeys(chain(*buckets), len(microbatches))
    bucket_of = {p: number for number, bucket in enumerate(buckets) for p in bucket}
    under_way = {}

    def start(number):
        buffer = pack(buckets[number])
        under_way[number] = buffer, comm.start(all_reduce, buffer)

    def arrived(p):
        missing[p] -= 1
        number = bucket_of[p]
        if not any(missing[other] for other in buckets[number]):
            start(number)

    hooks = [p.register_post_accumulate_grad_hook(arrived) for p in missing]
    for forward, count in microbatches:
        backward(comm, forward() * count * comm.world_size / total)
    for hook in hooks:
        hook.remove()
    for number in range(len(buckets)):
        if number not in under_way:
            start(number)
    for number, (buffer, request) in under_way.items():
        request.wait()
        unpack(buckets[number], buffer, comm.world_size)
