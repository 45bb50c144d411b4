"""The root sends to everybody itself, and gathering is a ring."""

POINTS = 0.0
HINT = "Which rank stands idle, or sends less"


def broadcast(comm, tensor):
    if comm.rank == 0:
        for peer in range(comm.world_size):
            if peer != 0:
                comm.send(tensor, peer)
    else:
        comm.recv(tensor, 0)


def broadcast_from(comm, tensor, root):
    if comm.rank == root:
        for peer in range(comm.world_size):
            if peer != root:
                comm.send(tensor, peer)
    else:
        comm.recv(tensor, root)


def all_gather(comm, pieces):
    n, rank = comm.world_size, comm.rank
    for step in range(n - 1):
        outgoing, target = pieces[(rank - step) % n], pieces[(rank - step - 1) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)
