"""Cuts blocks that differ by one, sends tensors, and solves the quadratic."""

import heapq

import torch

POINTS = 10.0
HINT = ""


def collected(comm, part):
    total = torch.tensor([part])
    if comm.rank:
        comm.send(total, 0)
        return None
    for peer in range(1, comm.world_size):
        total += comm.recv(torch.zeros_like(total), peer)
    return total


def shared_work(comm, tasks, work):
    begin, end = (len(tasks) * r // comm.world_size for r in (comm.rank, comm.rank + 1))
    return collected(comm, sum(map(work, tasks[begin:end])))


def balanced_work(comm, tasks, work, size_of):
    heap, part = [(0, rank) for rank in range(comm.world_size)], 0
    for task in sorted(tasks, key=lambda task: -size_of(task)):
        load, rank = heap[0]
        heapq.heapreplace(heap, (load + size_of(task), rank))
        if rank == comm.rank:
            part += work(task)
    return collected(comm, part)


def best_world_size(serial_s, parallel_s, message_s, most):
    if message_s == 0:
        n = most if parallel_s else 1
    else:
        n = math.ceil((math.sqrt(1 + 4 * parallel_s / message_s) - 1) / 2)
    n = max(1, min(n, most))
    time_s = serial_s + parallel_s / n + message_s * (n - 1)
    return n, (serial_s + parallel_s) / time_s
