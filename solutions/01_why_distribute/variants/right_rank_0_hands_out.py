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


def fit_usl(measured):
    n, x = np.array(measured).T
    rows = np.stack([x / n, x / n * (n - 1), x * (n - 1)], axis=1)  # relative errors
    rate, queue, pairs = np.linalg.solve(rows.T @ rows, rows.T @ np.ones(len(n)))
    sigma, kappa = queue / rate, max(0.0, pairs / rate)
    if kappa < 1e-6:
        return np.float64(sigma), np.float64(0), np.float64(np.inf)
    peak = max(np.int64(1), np.int64(np.sqrt((1 - sigma) / kappa)))
    if (1 - sigma) / (peak * (peak + 1)) > kappa:
        peak += 1
    return sigma, kappa, peak
