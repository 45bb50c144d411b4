"""Rounds down: with six ranks the third round is not there."""

POINTS = 6.0
HINT = "6 is no power of two"


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
    while 2 * distance <= n:
        if place < distance:
            comm.send(tensor, (rank + distance) % n)
        elif place < 2 * distance:
            comm.recv(tensor, (rank - distance) % n)
        distance *= 2


def all_gather(comm, pieces):
    n, rank, distance = comm.world_size, comm.rank, 1
    while distance < n:
        ahead, count = (rank + distance) % n, min(distance, n - distance)
        outgoing = torch.stack([pieces[(rank + i) % n] for i in range(count)])
        arrived = torch.empty_like(outgoing)
        comm.sendrecv(outgoing, arrived, dst=(rank - distance) % n, src=ahead)
        for i, piece in enumerate(arrived):
            pieces[(ahead + i) % n].copy_(piece)
        distance *= 2
