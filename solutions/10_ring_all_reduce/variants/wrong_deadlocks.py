"""Every rank sends first and receives second."""

POINTS = 0.0
HINT = "all ranks cannot send first"
REPLACE = {
    "        outgoing = chunks[(rank - step) % n]\n": "",
    "comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)": (
        "comm.send(chunks[(rank - step) % n], (rank + 1) % n)\n"
        "        comm.recv(arrived, (rank - 1) % n)"
    ),
}


def ring(comm, tensor):
    n, rank = comm.world_size, comm.rank
    chunks = split(tensor, n)
    reduce_scatter(comm, chunks)
    for step in range(n - 1):
        comm.send(chunks[(rank + 1 - step) % n], (rank + 1) % n)
        comm.recv(chunks[(rank - step) % n], (rank - 1) % n)
