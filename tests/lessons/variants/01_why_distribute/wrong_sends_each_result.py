"""Sends every result as soon as it is there."""

POINTS = 3.0
HINT = "A message per task"


def shared_work(comm, tasks, work):
    part = sum(work(task) for task in tasks[comm.rank :: comm.world_size])
    if comm.rank > 0:
        return comm.send_object(part, 0)
    return part + sum(comm.recv_object(r) for r in range(1, comm.world_size))


def balanced_work(comm, tasks, work, size_of):
    loads, total = [0] * comm.world_size, 0
    for task in sorted(tasks, key=size_of, reverse=True):
        rank = loads.index(min(loads))
        loads[rank] += size_of(task)
        if rank == comm.rank == 0:
            total += work(task)
        elif rank == comm.rank:
            comm.send_object(work(task), 0)
        elif comm.rank == 0:
            total += comm.recv_object(rank)
    return total
