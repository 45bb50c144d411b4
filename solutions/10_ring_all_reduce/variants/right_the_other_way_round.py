"""Sends to the left, starts with the chunk before its own, returns NumPy's integer."""

import numpy as np

POINTS = 10.0
HINT = ""


def reduce_scatter(comm, chunks, ring):
    n, place = len(ring), ring.index(comm.rank)
    for step in range(n - 1):
        target = chunks[(place + step + 2) % n]
        arrived = torch.zeros_like(target)
        outgoing = chunks[(place + step + 1) % n]
        comm.sendrecv(outgoing, arrived, dst=ring[place - 1], src=ring[(place + 1) % n])
        target.add_(arrived)
    return np.int64(place)


def all_gather(comm, chunks, ring, complete):
    n, place = len(ring), ring.index(comm.rank)
    for step in range(n - 1):
        outgoing, target = (
            chunks[(complete + step) % n],
            chunks[complete + step + 1 - n],
        )
        comm.sendrecv(outgoing, target, dst=ring[place - 1], src=ring[(place + 1) % n])


def hierarchical(comm, tensor, per_node):
    n, rank = comm.world_size, comm.rank
    node = [other for other in range(n) if other // per_node == rank // per_node]
    peers = [other for other in range(n) if other % per_node == rank % per_node]
    chunks = split(tensor, per_node)
    mine = reduce_scatter(comm, chunks, node[::-1])
    all_reduce(comm, chunks[mine], peers[::-1])
    all_gather(comm, chunks, node[::-1], mine)
