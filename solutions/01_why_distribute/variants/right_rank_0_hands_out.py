"""Rank 0 tells the others what to do in step 1; sums meet in a tree in step 2."""

import numpy as np

POINTS = 10.0
HINT = ""


def shared_work(comm, tasks, work):
    n = comm.world_size
    if comm.rank:
        mine = comm.recv_object(0)
        comm.send_object([work(task) for task in mine], 0)
        return 0
    tasks = list(tasks)
    for peer in range(1, n):
        share, tasks = tasks[: len(tasks) // n], tasks[len(tasks) // n :]
        comm.send_object(share, peer)
    results = [work(task) for task in tasks]
    for peer in range(1, n):
        results += comm.recv_object(peer)
    return np.sum(results)


def balanced_work(comm, tasks, work, size_of):
    loads = dict.fromkeys(range(comm.world_size), 0)
    owner = {}
    for task in sorted(tasks, key=lambda task: (-size_of(task), task)):
        owner[task] = min(loads, key=loads.get)
        loads[owner[task]] += size_of(task)
    part = sum(work(task) for task in tasks if owner[task] == comm.rank)
    reach = 1
    while reach < comm.world_size:
        if comm.rank % (2 * reach):
            comm.send_object(part, comm.rank - reach)
            return None
        if comm.rank + reach < comm.world_size:
            part += comm.recv_object(comm.rank + reach)
        reach *= 2
    return part


def best_world_size(serial_s, parallel_s, message_s, most):
    saves = parallel_s > 0
    if message_s:
        n = math.isqrt(int(parallel_s / message_s))
        saves = n * (n + 1) * message_s < parallel_s
    else:
        n = most - 1
    n = min(most, max(1, n + 1)) if saves else max(1, min(n, most))
    if not parallel_s:
        n = 1
    times = [serial_s + parallel_s / k + message_s * (k - 1) for k in (1, n)]
    return np.int64(n), np.float64(times[0] / times[1])
