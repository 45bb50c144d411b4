"""Everything is counted from rank 0, whatever the root is."""

POINTS = 6.0
HINT = "what rank 0 began with"


def broadcast_from(comm, tensor, root):
    n, rank, distance = comm.world_size, comm.rank, 1
    while distance < n:
        if rank < distance and rank + distance < n:
            comm.send(tensor, rank + distance)
        elif distance <= rank < 2 * distance:
            comm.recv(tensor, rank - distance)
        distance *= 2
