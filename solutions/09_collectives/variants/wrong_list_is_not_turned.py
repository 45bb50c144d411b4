"""Collects the chunks in the order in which they come, and leaves them so."""

POINTS = 7.0
HINT = "Chunks stand in other places"


def all_gather(comm, pieces):
    n, rank, length = comm.world_size, comm.rank, len(pieces[0])
    collected = pieces[rank].clone()
    while len(collected) < n * length:
        have = len(collected) // length
        outgoing = collected[: min(have, n - have) * length]
        arrived = torch.empty_like(outgoing)
        comm.sendrecv(outgoing, arrived, dst=(rank - have) % n, src=(rank + have) % n)
        collected = torch.cat([collected, arrived])
    for target, piece in zip(pieces, collected.split(length), strict=True):
        target.copy_(piece)
