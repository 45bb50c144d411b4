"""Every rank returns its own part, and nobody sends anything."""

POINTS = 3.0
HINT = "What a rank learns has to arrive"


def shared_work(comm, tasks, work):
    return sum(work(task) for task in tasks[comm.rank :: comm.world_size])
