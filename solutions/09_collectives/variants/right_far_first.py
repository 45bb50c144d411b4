"""Sends far away first; collects the chunks in a list, and turns it at the end."""

POINTS = 10.0
HINT = ""


def broadcast(comm, tensor):
    distance = comm.world_size // 2
    while distance:
        if comm.rank % (2 * distance) == 0:
            comm.send(tensor, comm.rank + distance)
        elif comm.rank % distance == 0:
            comm.recv(tensor, comm.rank - distance)
        distance //= 2


def broadcast_from(comm, tensor, root):
    n = comm.world_size
    place = (comm.rank - root) % n
    for bit in reversed(range((n - 1).bit_length())):
        distance = 2**bit
        if place % (2 * distance) == 0 and place + distance < n:
            comm.send(tensor, (place + distance + root) % n)
        elif place % (2 * distance) == distance:
            comm.recv(tensor, (place - distance + root) % n)


def all_gather(comm, pieces):
    n, rank, length = comm.world_size, comm.rank, len(pieces[0])
    collected = pieces[rank].clone()
    while len(collected) < n * length:
        have = len(collected) // length
        outgoing = collected[: min(have, n - have) * length]
        arrived = torch.empty_like(outgoing)
        comm.sendrecv(outgoing, arrived, dst=(rank - have) % n, src=(rank + have) % n)
        collected = torch.cat([collected, arrived])
    for i, piece in enumerate(collected.split(length)):
        pieces[(rank + i) % n][:] = piece
