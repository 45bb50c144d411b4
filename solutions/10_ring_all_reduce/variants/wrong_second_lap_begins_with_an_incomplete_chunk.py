"""Begins the second lap with its own chunk, which is not the complete one."""

POINTS = 3.0
HINT = "with which chunk does the second lap begin"


def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(target)
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        target += arrived
    return (rank + 1) % n


def ring(comm, tensor):
    n, rank = comm.world_size, comm.rank
    chunks = split(tensor, n)
    reduce_scatter(comm, chunks)
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
