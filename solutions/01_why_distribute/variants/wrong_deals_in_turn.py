"""Deals uneven tasks in turn, as even ones."""

POINTS = 6.0
HINT = "Which task do you place first"


def balanced_work(comm, tasks, work, size_of):
    return shared_work(comm, tasks, work)
