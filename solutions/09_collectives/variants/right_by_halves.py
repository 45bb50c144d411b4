"""Halves the ranks again and again: the first of each half sends to its own half."""

POINTS = 10.0
HINT = ""


def tell(comm, tensor, first, end, root):
    """The rank at place `first` has the tensor; those up to `end` are to get it."""
    if end - first < 2:
        return
    n, place = comm.world_size, (comm.rank - root) % comm.world_size
    middle = (first + end + 1) // 2
    if place == first:
        comm.send(tensor, (middle + root) % n)
    elif place == middle:
        comm.recv(tensor, (first + root) % n)
    if place < middle:
        tell(comm, tensor, first, middle, root)
    else:
        tell(comm, tensor, middle, end, root)


def broadcast(comm, tensor):
    tell(comm, tensor, 0, comm.world_size, 0)


def broadcast_from(comm, tensor, root):
    tell(comm, tensor, 0, comm.world_size, root)


def all_gather(comm, pieces):
    n, rank = comm.world_size, comm.rank
    whole = torch.stack(pieces).roll(-rank, 0)
    for distance in [2**k for k in range((n - 1).bit_length())]:
        count = min(distance, n - distance)
        arrived = whole[distance : distance + count]
        dst, src = (rank - distance) % n, (rank + distance) % n
        comm.sendrecv(whole[:count], arrived, dst=dst, src=src)
    for piece, row in zip(pieces, whole.roll(rank, 0), strict=True):
        piece.copy_(row)
