"""Each rank takes a task if nobody has less, and all believe that at first."""

POINTS = 6.0
HINT = "do not agree who takes what"


def balanced_work(comm, tasks, work, size_of):
    n, loads, part = comm.world_size, [0] * comm.world_size, 0
    for task in sorted(tasks, key=size_of, reverse=True):
        rank = min(range(n), key=lambda r: (loads[r], r != comm.rank))
        loads[rank] += size_of(task)
        if rank == comm.rank:
            part += work(task)
    if comm.rank:
        return comm.send_object(part, 0)
    return part + sum(comm.recv_object(r) for r in range(1, n))
