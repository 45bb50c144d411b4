"""Passes a growing sum down to rank 0, and halves the world sizes."""

POINTS = 10.0
HINT = ""


def passed_down(comm, part):
    if comm.rank + 1 < comm.world_size:
        part += comm.recv_object(comm.rank + 1)
    if comm.rank:
        comm.send_object(part, comm.rank - 1)
    return part


def shared_work(comm, tasks, work):
    part = 0
    for place, task in enumerate(tasks):
        if place % comm.world_size == comm.rank:
            part += work(task)
    return passed_down(comm, part)


def balanced_work(comm, tasks, work, size_of):
    loads = [0] * comm.world_size
    mine = []
    for task in reversed(sorted(tasks, key=size_of)):
        rank = min(reversed(range(comm.world_size)), key=lambda r: loads[r])
        loads[rank] += size_of(task)
        mine += [task] * (rank == comm.rank)
    return passed_down(comm, sum(work(task) for task in mine))


def best_world_size(serial_s, parallel_s, message_s, most):
    def time_s(n):
        return serial_s + parallel_s / n + message_s * (n - 1)

    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if time_s(middle + 1) < time_s(middle):
            low = middle + 1
        else:
            high = middle
    return low, time_s(1) / time_s(low)
