"""Sends every result as soon as it is there."""

POINTS = 6.0
HINT = "only results have to travel"


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
