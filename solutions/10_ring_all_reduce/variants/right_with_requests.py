"""Posts the receive, then the send, and waits for both; keeps its own bounds."""

POINTS = 10.0
HINT = ""


def exchange(comm, outgoing, incoming):
    n = comm.world_size
    receiving = comm.irecv(incoming, (comm.rank - 1) % n)
    sending = comm.isend(outgoing, (comm.rank + 1) % n)
    sending.wait()
    return receiving.wait()


def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        target += exchange(comm, chunks[(rank - step) % n], torch.zeros_like(target))
    return (rank + 1) % n


def ring(comm, tensor):
    n = comm.world_size
    chunks = torch.tensor_split(tensor, n)
    complete = reduce_scatter(comm, chunks)
    for step in range(n - 1):
        incoming = chunks[(complete - step - 1) % n]
        exchange(comm, chunks[(complete - step) % n].clone(), incoming)
