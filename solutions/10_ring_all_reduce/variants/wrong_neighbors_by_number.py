"""Sends to rank + 1, whatever the order of the ring."""

POINTS = 0.0
HINT = "`ring` is the order of the ranks"


def reduce_scatter(comm, chunks, ring):
    n, rank = comm.world_size, comm.rank
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(target)
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        target += arrived
    return (rank + 1) % n
