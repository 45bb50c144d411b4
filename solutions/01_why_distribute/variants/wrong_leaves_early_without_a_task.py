"""A rank that has no task returns before it sends."""

POINTS = 7.0
HINT = "also a rank that has no task"


def shared_work(comm, tasks, work):
    mine = tasks[comm.rank :: comm.world_size]
    if not mine:
        return 0
    part = sum(work(task) for task in mine)
    if comm.rank:
        return comm.send_object(part, 0)
    return part + sum(comm.recv_object(r) for r in range(1, comm.world_size))
