"""Right sums, but every message is the whole tensor."""

POINTS = 7.0
HINT = "as long as the whole tensor"


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
    n, rank = comm.world_size, comm.rank
    passing, total = tensor.clone(), tensor.clone()
    for lap in range(2):
        for _ in range(n - 1):
            arrived = torch.empty_like(tensor)
            comm.sendrecv(passing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
            if lap == 0:
                total += arrived
            passing = arrived
    tensor.copy_(total)
