"""Rank 0 does all tasks, and the others return at once."""

POINTS = 3.0
HINT = "One rank does everything"


def shared_work(comm, tasks, work):
    if comm.rank == 0:
        return sum(work(task) for task in tasks)
