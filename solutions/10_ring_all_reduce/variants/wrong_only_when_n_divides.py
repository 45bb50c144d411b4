"""Cuts chunks of numel // n, and forgets the rest."""

POINTS = 3.0
HINT = "chunks differ in length"


def ring(comm, tensor):
    n, rank = comm.world_size, comm.rank
    length = len(tensor) // n
    chunks = [tensor[i * length : (i + 1) * length] for i in range(n)]
    reduce_scatter(comm, chunks)
    for step in range(n - 1):
        target = chunks[(rank - step) % n]
        outgoing = chunks[(rank + 1 - step) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
