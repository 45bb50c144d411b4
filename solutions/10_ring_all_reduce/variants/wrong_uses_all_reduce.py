"""Calls torch's own all_reduce."""

import torch.distributed as dist

POINTS = 0.0
HINT = "Write it from comm.sendrecv"


def reduce_scatter(comm, chunks):
    for chunk in chunks:
        dist.all_reduce(chunk)
    return comm.rank


def ring(comm, tensor):
    dist.all_reduce(tensor)
