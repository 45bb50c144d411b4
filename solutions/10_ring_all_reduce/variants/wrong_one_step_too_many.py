"""Makes n steps where n - 1 are enough."""

POINTS = 7.0
HINT = "How many steps is that"


def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    arrived = torch.empty_like(chunks[0])
    for step in range(n):
        target = chunks[(rank - step - 1) % n]
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        target += arrived
    return (rank + 1) % n
