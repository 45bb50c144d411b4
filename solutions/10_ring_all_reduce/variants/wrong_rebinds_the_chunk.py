"""Adds into new tensors, so that the learner's own tensor never changes."""

POINTS = 7.0
HINT = "Change the tensor itself"


def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    for step in range(n - 1):
        target = (rank - step - 1) % n
        outgoing = chunks[(rank - step) % n]
        arrived = torch.empty_like(chunks[target])
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        chunks[target] = chunks[target] + arrived
    return (rank + 1) % n
