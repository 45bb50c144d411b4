"""Near ranks first, with the pairs of a reduction: some send before they have it."""

POINTS = 7.0
HINT = "before it has the tensor"


def broadcast(comm, tensor):
    distance = 1
    while distance < comm.world_size:
        if comm.rank % (2 * distance) == 0:
            comm.send(tensor, comm.rank + distance)
        elif comm.rank % (2 * distance) == distance:
            comm.recv(tensor, comm.rank - distance)
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
        outgoing = torch.stack([pieces[(rank + i) % n] for i in range(count)])
        arrived = torch.empty_like(outgoing)
        comm.sendrecv(outgoing, arrived, dst=(rank - distance) % n, src=ahead)
        for i, piece in enumerate(arrived):
            pieces[(ahead + i) % n].copy_(piece)
        distance *= 2
