"""Deals uneven tasks in turn, as even ones."""

POINTS = 3.0
HINT = "dealt in turn, whatever their size"


def shared_work(comm, tasks, work):
    part = sum(work(task) for task in tasks[comm.rank :: comm.world_size])
    if comm.rank > 0:
        return comm.send_object(part, 0)
    return part + sum(comm.recv_object(r) for r in range(1, comm.world_size))


def balanced_work(comm, tasks, work, size_of):
    return shared_work(comm, tasks, work)
