"""Hooks are there for the last microbatch only; every sample counts 1 until the end."""

import torch

POINTS = 10.0
HINT = ""


def in_buckets(parameters, first_bytes, bucket_bytes):
    return filled(bucket_bytes, first_bytes, [p for p in parameters if p.requires_grad])


def filled(room, first_room, parameters):
    if not parameters:
        return []
    bucket = [parameters.pop()]
    while parameters and parameters[-1].dtype == bucket[0].dtype:
        if sum(p.nbytes for p in [*bucket, parameters[-1]]) > first_room:
            break
        bucket.append(parameters.pop())
    return [bucket, *filled(room, room, parameters)]


def gather(bucket):
    numbers = sum(p.numel() for p in bucket)
    buffer, at = torch.zeros(numbers, dtype=bucket[0].dtype), 0
    for p in bucket:
        if p.grad is not None:
            buffer[at : at + p.numel()] = p.grad.flatten()
        at += p.numel()
    return buffer


def hand_out(bucket, buffer, divisor):
    for p in bucket:
        mine, buffer = buffer[: p.numel()], buffer[p.numel() :]
        p.grad = (mine / divisor).view_as(p)


def average_gradients(comm, buckets, all_reduce):
    buffers = [gather(bucket) for bucket in buckets]
    for bucket, buffer in zip(buckets, buffers, strict=True):
        all_reduce(comm, buffer)
        hand_out(bucket, buffer, comm.world_size)


def accumulate(comm, microbatches, total, buckets, all_reduce):
    for forward, count in microbatches:
        (forward() * count).backward()
    for bucket in reversed(buckets):
        buffer = gather(bucket)
        comm.start(all_reduce, buffer).wait()
        hand_out(bucket, buffer, total)


def overlap(comm, microbatches, total, buckets, all_reduce):
    there, started = set(), []

    def start(bucket):
        buffer = gather(bucket)
        started.append((bucket, buffer, comm.start(all_reduce, buffer)))

    def hook(p):
        there.add(p)
        while started != buckets and there.issuperset(buckets[len(started)]):
            start(buckets[len(started)])
            if len(started) == len(buckets):
                return

    hooks = []
    for number, (forward, count) in enumerate(microbatches, 1):
        if number == len(microbatches):
            every = [p for bucket in buckets for p in bucket]
            hooks = [p.register_post_accumulate_grad_hook(hook) for p in every]
        (forward() * count).backward()
    for handle in hooks:
        handle.remove()
    for bucket in buckets[len(started) :]:
        start(bucket)
    for bucket, buffer, request in started:
        request.wait()
        hand_out(bucket, buffer, total)
