"""Sends the whole list in every round, the rubbish in it included."""

POINTS = 7.0
HINT = "Every message is the whole list"


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
    n, rank, distance = comm.world_size, comm.rank, 1
    while distance < n:
        ahead, count = (rank + distance) % n, min(distance, n - distance)
        outgoing = torch.stack(pieces)
        arrived = torch.empty_like(outgoing)
        comm.sendrecv(outgoing, arrived, dst=(rank - distance) % n, src=ahead)
        for i in range(count):
            pieces[(ahead + i) % n].copy_(arrived[(ahead + i) % n])
        distance *= 2
