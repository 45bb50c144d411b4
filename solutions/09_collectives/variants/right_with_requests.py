"""Begins sends and receives with isend and irecv; gathers from the other side."""

POINTS = 10.0
HINT = ""


def broadcast(comm, tensor):
    broadcast_from(comm, tensor, 0)


def broadcast_from(comm, tensor, root):
    n, place = comm.world_size, (comm.rank - root) % comm.world_size
    lowest = place & -place if place else 2 ** (n - 1).bit_length()
    if place:
        comm.irecv(tensor, (comm.rank - lowest) % n).wait()
    distance = lowest // 2
    while distance:
        if place + distance < n:
            comm.isend(tensor, (comm.rank + distance) % n).wait()
        distance //= 2


def all_gather(comm, pieces):
    n, rank, have = comm.world_size, comm.rank, 1
    while have < n:
        count = min(have, n - have)
        outgoing = torch.cat([pieces[(rank - i) % n] for i in range(count)])
        arrived = torch.zeros_like(outgoing)
        receiving = comm.irecv(arrived, (rank - have) % n)
        sending = comm.isend(outgoing, (rank + have) % n)
        sending.wait()
        for i, piece in enumerate(receiving.wait().tensor_split(count)):
            pieces[(rank - have - i) % n].copy_(piece)
        have += count
