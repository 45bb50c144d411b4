"""Finds its neighbors in the ring, and counts chunks by rank instead of place."""

POINTS = 0.0
HINT = "This sum has something in it from another chunk"


def reduce_scatter(comm, chunks, ring):
    n, place, rank = len(ring), ring.index(comm.rank), comm.rank
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(target)
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, arrived, dst=ring[(place + 1) % n], src=ring[place - 1])
        target += arrived
    return (rank + 1) % n
