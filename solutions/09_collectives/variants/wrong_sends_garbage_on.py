"""Near ranks first, with the pairs of a reduction: some send before they have it."""

POINTS = 7.0
HINT = "A rank sends what it does not have yet"


def broadcast(comm, tensor):
    distance = 1
    while distance < comm.world_size:
        if comm.rank % (2 * distance) == 0:
            comm.send(tensor, comm.rank + distance)
        elif comm.rank % (2 * distance) == distance:
            comm.recv(tensor, comm.rank - distance)
        distance *= 2
