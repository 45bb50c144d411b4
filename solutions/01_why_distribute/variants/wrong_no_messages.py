"""Every rank returns its own part, and nobody sends anything."""

POINTS = 3.0
HINT = "Whatever rank 0 learns"


def shared_work(comm, tasks, work):
    return sum(work(task) for task in tasks[comm.rank :: comm.world_size])
