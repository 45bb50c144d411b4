"""Right sums, but rank 0 does all the work."""

POINTS = 7.0
HINT = "nobody is special"


def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    arrived = torch.empty_like(chunks[0])
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        target += arrived
    return (rank + 1) % n


def ring(comm, tensor):
    if comm.rank:
        comm.send(tensor, 0)
        comm.recv(tensor, 0)
        return
    for peer in range(1, comm.world_size):
        tensor += comm.recv(torch.empty_like(tensor), peer)
    for peer in range(1, comm.world_size):
        comm.send(tensor, peer)
