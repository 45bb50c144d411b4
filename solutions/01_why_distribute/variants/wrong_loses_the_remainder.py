"""Cuts blocks of len(tasks) // n, and forgets the rest."""

POINTS = 7.0
HINT = "Some tasks are lost"


def shared_work(comm, tasks, work):
    length = len(tasks) // comm.world_size
    mine = tasks[comm.rank * length : (comm.rank + 1) * length]
    part = sum(work(task) for task in mine)
    if comm.rank:
        return comm.send_object(part, 0)
    return part + sum(comm.recv_object(r) for r in range(1, comm.world_size))
