"""Deals uneven tasks in turn, as even ones."""

POINTS = 6.0
HINT = "dealt in turn, whatever their size"


def balanced_work(comm, tasks, work, size_of):
    return shared_work(comm, tasks, work)
