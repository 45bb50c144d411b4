"""Stops the first lap one step too early."""

POINTS = 7.0
HINT = "One share is missing"


def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    arrived = torch.empty_like(chunks[0])
    for step in range(max(1, n - 2)):
        target = chunks[(rank - step - 1) % n]
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        target += arrived
    return (rank - step - 1) % n
