"""Passes a growing sum down to rank 0; fits a parabola, and tries the sizes."""

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


def fit_usl(measured):
    n, _ = zip(*measured)
    c, b, a = np.polyfit(n, [k / x for k, x in measured], 2)[::-1]
    sigma, kappa = (b + a) / (a + b + c), a / (a + b + c)
    if abs(kappa) < 1e-6:
        return [sigma, 0, float("inf")]
    sizes = range(1, 1000)
    best = max(sizes, key=lambda k: k / (1 + (k - 1) * (sigma + kappa * k)))
    return [sigma, kappa, best]
