"""Sends the whole list in every round, the garbage in it included."""

POINTS = 7.0
HINT = "or to a rank that has it"


def all_gather(comm, pieces):
    n, rank, distance = comm.world_size, comm.rank, 1
    while distance < n:
        ahead, count = (rank + distance) % n, min(distance, n - distance)
        outgoing = torch.stack(pieces)
        arrived = torch.empty_like(outgoing)
        comm.sendrecv(outgoing, arrived, dst=(rank - distance) % n, src=ahead)
        for i in range(count):
            pieces[(ahead + i) % n].copy_(arrived[(ahead + i) % n])
        distance *= 2
