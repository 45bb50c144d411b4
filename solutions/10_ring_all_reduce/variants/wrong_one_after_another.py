"""A chunk at a time walks around the ring while every other rank stands idle."""

POINTS = 7.0
HINT = "stand idle"


def ring(comm, tensor):
    n, rank = comm.world_size, comm.rank
    for index, chunk in enumerate(split(tensor, n)):
        for hop in range(2 * (n - 1)):
            sender = (index + hop) % n
            if rank == sender:
                comm.send(chunk, (rank + 1) % n)
            elif rank == (sender + 1) % n:
                arrived = comm.recv(torch.empty_like(chunk), sender)
                chunk.copy_(chunk + arrived if hop < n - 1 else arrived)
