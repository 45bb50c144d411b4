"""One piece a round, around a ring."""

POINTS = 7.0
HINT = "A ring: one piece in each round"


def all_gather(comm, pieces):
    n, rank = comm.world_size, comm.rank
    for step in range(n - 1):
        outgoing, target = pieces[(rank - step) % n], pieces[(rank - step - 1) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
