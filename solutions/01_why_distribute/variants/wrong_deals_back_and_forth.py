"""Deals sorted tasks back and forth, 0, 1, 2, 2, 1, 0, and looks at no load."""

POINTS = 6.0
HINT = "Which task do you place first"


def balanced_work(comm, tasks, work, size_of):
    n = comm.world_size
    groups = [[] for _ in range(n)]
    turns = [*range(n), *reversed(range(n))]
    for place, task in enumerate(sorted(tasks, key=size_of, reverse=True)):
        groups[turns[place % (2 * n)]].append(task)
    return shared_work(comm, groups, lambda group: sum(map(work, group)))
