"""Passes every chunk around and overwrites with what arrives."""

POINTS = 0.0
HINT = "has to be added"


def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
    return (rank + 1) % n


def ring(comm, tensor):
    chunks = split(tensor, comm.world_size)
    reduce_scatter(comm, chunks)
    reduce_scatter(comm, chunks)
