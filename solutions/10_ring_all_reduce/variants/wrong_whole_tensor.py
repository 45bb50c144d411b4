"""Right sums, but every message is the whole tensor."""

POINTS = 4.0
HINT = "What of yours is longer"


def all_reduce(comm, tensor, ring):
    n, place = len(ring), ring.index(comm.rank)
    passing, total = tensor.clone(), tensor.clone()
    for step in range(2 * (n - 1)):
        arrived = torch.empty_like(tensor)
        comm.sendrecv(passing, arrived, dst=ring[(place + 1) % n], src=ring[place - 1])
        if step < n - 1:
            total += arrived
        passing = arrived
    tensor.copy_(total)
