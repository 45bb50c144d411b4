"""Receives into a buffer as long as the first chunk, whatever arrives."""

POINTS = 3.0
HINT = "as long as what will arrive"


def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    arrived = torch.empty_like(chunks[0])
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        target += arrived
    return (rank + 1) % n


def ring(comm, tensor):
    n, rank = comm.world_size, comm.rank
    chunks = split(tensor, n)
    reduce_scatter(comm, chunks)
    for step in range(n - 1):
        target = chunks[(rank - step) % n]
        outgoing = chunks[(rank + 1 - step) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
