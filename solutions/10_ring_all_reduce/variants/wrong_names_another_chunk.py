"""Adds rightly, and returns the index of another chunk than the complete one."""

POINTS = 7.0
HINT = "Another chunk of this rank is complete"


def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    arrived = torch.empty_like(chunks[0])
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        target += arrived
    return rank
