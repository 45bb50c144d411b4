"""Posts the receive, then the send, and waits for both; no helper for the phases."""

POINTS = 10.0
HINT = ""


def exchange(comm, outgoing, incoming, ring):
    place = ring.index(comm.rank)
    receiving = comm.irecv(incoming, ring[place - 1])
    sending = comm.isend(outgoing, ring[(place + 1) % len(ring)])
    sending.wait()
    return receiving.wait()


def reduce_scatter(comm, chunks, ring):
    n, place = len(ring), ring.index(comm.rank)
    for step in range(n - 1):
        target = chunks[(place - step - 1) % n]
        outgoing = chunks[(place - step) % n]
        target += exchange(comm, outgoing, torch.zeros_like(target), ring)
    return (place + 1) % n


def all_reduce(comm, tensor, ring):
    chunks = torch.tensor_split(tensor, len(ring))
    complete = reduce_scatter(comm, chunks, ring)
    for step in range(len(ring) - 1):
        outgoing = chunks[(complete - step) % len(ring)].clone()
        exchange(comm, outgoing, chunks[(complete - step - 1) % len(ring)], ring)
