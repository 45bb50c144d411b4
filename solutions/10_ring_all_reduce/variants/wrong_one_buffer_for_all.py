"""Receives into a buffer as long as the first chunk, whatever arrives."""

POINTS = 3.0
HINT = "as long as what will arrive"


def ring(comm, tensor):
    n, rank = comm.world_size, comm.rank
    chunks = split(tensor, n)
    reduce_scatter(comm, chunks)
    for step in range(n - 1):
        target = chunks[(rank - step) % n]
        outgoing = chunks[(rank + 1 - step) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
