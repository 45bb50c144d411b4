"""The root begins to send to everybody at once, as if that were one round."""

POINTS = 3.0
HINT = "leave one after another all the same"


def broadcast(comm, tensor):
    if comm.rank == 0:
        peers = range(1, comm.world_size)
        for request in [comm.isend(tensor, peer) for peer in peers]:
            request.wait()
    else:
        comm.recv(tensor, 0)


def broadcast_from(comm, tensor, root):
    if comm.rank == root:
        peers = [peer for peer in range(comm.world_size) if peer != root]
        for request in [comm.isend(tensor, peer) for peer in peers]:
            request.wait()
    else:
        comm.recv(tensor, root)
