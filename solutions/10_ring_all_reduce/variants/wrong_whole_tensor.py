"""Right sums, but every message is the whole tensor."""

POINTS = 7.0
HINT = "as long as the whole tensor"


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
