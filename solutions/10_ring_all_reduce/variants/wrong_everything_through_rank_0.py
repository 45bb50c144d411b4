"""Right sums, but rank 0 does all the work."""

POINTS = 7.0
HINT = "nobody is special"


def ring(comm, tensor):
    if comm.rank:
        comm.send(tensor, 0)
        comm.recv(tensor, 0)
        return
    for peer in range(1, comm.world_size):
        tensor += comm.recv(torch.empty_like(tensor), peer)
    for peer in range(1, comm.world_size):
        comm.send(tensor, peer)
