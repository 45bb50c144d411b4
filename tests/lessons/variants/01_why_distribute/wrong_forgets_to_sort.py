"""Gives each task to who has least, in the order of the list."""

POINTS = 3.0
HINT = "a large one comes late"


def shared_work(comm, tasks, work):
    part = sum(work(task) for task in tasks[comm.rank :: comm.world_size])
    if comm.rank > 0:
        return comm.send_object(part, 0)
    return part + sum(comm.recv_object(r) for r in range(1, comm.world_size))


def balanced_work(comm, tasks, work, size_of):
    shares = [[] for _ in range(comm.world_size)]
    loads = [0] * comm.world_size
    for task in tasks:
        rank = loads.index(min(loads))
        shares[rank].append(task)
        loads[rank] += size_of(task)
    return shared_work(comm, shares, lambda share: sum(map(work, share)))
