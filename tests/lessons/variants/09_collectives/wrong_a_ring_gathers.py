"""One piece a round, around a ring."""

POINTS = 7.0
HINT = "A ring: one piece in each round"


def broadcast(comm, tensor):
    rank, distance = comm.rank, 1
    while distance < comm.world_size:
        if rank < distance:
            comm.send(tensor, rank + distance)
        elif rank < 2 * distance:
            comm.recv(tensor, rank - distance)
        distance *= 2


def broadcast_from(comm, tensor, root):
    n, rank = comm.world_size, comm.rank
    place, distance = (rank - root) % n, 1
    while distance < n:
        if place < distance and place + distance < n:
            comm.send(tensor, (rank + distance) % n)
        elif distance <= place < 2 * distance:
            comm.recv(tensor, (rank - distance) % n)
        distance *= 2


def all_gather(comm, pieces):
    n, rank = comm.world_size, comm.rank
    for step in range(n - 1):
        outgoing, target = pieces[(rank - step) % n], pieces[(rank - step - 1) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
