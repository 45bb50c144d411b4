"""Rank 0 works only where it is alone, so that one of two ranks does everything."""

POINTS = 3.0
HINT = "The work is not shared"


def shared_work(comm, tasks, work):
    n = comm.world_size
    if n == 1:
        return sum(work(task) for task in tasks)
    if comm.rank:
        mine = tasks[comm.rank - 1 :: n - 1]
        return comm.send_object(sum(work(task) for task in mine), 0)
    return sum(comm.recv_object(peer) for peer in range(1, n))
