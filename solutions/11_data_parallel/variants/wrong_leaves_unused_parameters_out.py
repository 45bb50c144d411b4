"""Packs only the gradients that are there, so that ranks send different lengths."""

import torch

POINTS = 7.0
HINT = "A buffer holds the gradients of the parameters of one bucket"


def average_gradients(comm, buckets, all_reduce):
    for bucket in buckets:
        used = [p for p in bucket if p.grad is not None]
        buffer = flat([torch.zeros(0), *[p.grad for p in used]])
        all_reduce(comm, buffer)
        for p, piece in zip(used, views(buffer, used), strict=True):
            p.grad = piece / comm.world_size
