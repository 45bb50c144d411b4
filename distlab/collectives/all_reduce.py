"""All-reduce: every rank starts with a tensor and ends with the sum of all of them."""

from distlab.collectives.arguments import flat_view
from distlab.collectives.chunks import room_like, split
from distlab.collectives.powers_of_two import powers_below
from distlab.collectives.reductions import SUM

__all__ = ["naive_all_reduce", "ring_all_reduce", "tree_all_reduce"]


def naive_all_reduce(comm, tensor, *, op=SUM) -> None:
    """Add everything up on rank 0, then send the sum back to every rank; in place.

    Rank 0 handles n - 1 tensors in and n - 1 tensors out, one after another, while the
    others wait.

    Cost: 2(n-1) rounds; rank 0 sends (n-1) S, every other rank S.
    """
    flat = flat_view(comm, tensor, op)
    if comm.rank != 0:
        comm.send(flat, 0)
        comm.recv(flat, 0)
        return
    arrived = room_like(flat)
    for peer in range(1, comm.world_size):
        comm.mark(f"gather, from rank {peer}")
        comm.recv(arrived, peer)
        op.combine(flat, arrived)
    op.finish(flat, comm.world_size)
    for peer in range(1, comm.world_size):
        comm.mark(f"send back, to rank {peer}")
        comm.send(flat, peer)


def tree_all_reduce(comm, tensor, *, op=SUM) -> None:
    """Add up along a binomial tree to rank 0, and send the sum back; in place.

    In every round half of the ranks that are left send their sum to a neighbour, and
    the sum goes back the same way, so the number of rounds grows with log n; but each
    message is the whole tensor.

    Cost: 2 ceil(log2 n) rounds; the busiest rank sends ceil(log2 n) S.
    """
    flat = flat_view(comm, tensor, op)
    n, rank = comm.world_size, comm.rank
    arrived, distances = room_like(flat), powers_below(n)
    for distance in distances:
        comm.mark(f"reduce, distance {distance}")
        if rank % (2 * distance) == distance:
            comm.send(flat, rank - distance)
        elif rank % (2 * distance) == 0 and rank + distance < n:
            comm.recv(arrived, rank + distance)
            op.combine(flat, arrived)
    if rank == 0:
        op.finish(flat, n)
    for distance in reversed(distances):
        comm.mark(f"broadcast, distance {distance}")
        if rank % (2 * distance) == 0 and rank + distance < n:
            comm.send(flat, rank + distance)
        elif rank % (2 * distance) == distance:
            comm.recv(flat, rank - distance)


def ring_all_reduce(comm, tensor, *, op=SUM) -> None:
    """Pass chunks around a ring in place: the first phase adds, the second copies.

    The tensor is cut into n chunks. In each step every rank sends one chunk to its
    right and receives one from its left. After n - 1 steps of adding, rank r holds the
    complete sum of chunk r + 1; n - 1 steps of passing complete chunks on finish it.

    Cost: 2(n-1) rounds; every rank sends 2(n-1)/n S, the least possible.
    If a peer dies: its neighbours lose their connection, the others wait for them.
    Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
        for clusters of workstations" (2009).
    """
    n, rank = comm.world_size, comm.rank
    right, left = (rank + 1) % n, (rank - 1) % n
    chunks = split(flat_view(comm, tensor, op), n)
    arrived = room_like(chunks[0])  # the first chunk is the longest
    for step in range(n - 1):
        comm.mark(f"reduce-scatter, step {step + 1} of {n - 1}")
        outgoing, target = chunks[(rank - step) % n], chunks[(rank - step - 1) % n]
        room = arrived[: len(target)]
        partial_sum = comm.sendrecv(outgoing, room, dst=right, src=left)
        op.combine(target, partial_sum)
    op.finish(chunks[(rank + 1) % n], n)
    for step in range(n - 1):
        comm.mark(f"all-gather, step {step + 1} of {n - 1}")
        outgoing, target = chunks[(rank + 1 - step) % n], chunks[(rank - step) % n]
        comm.sendrecv(outgoing, target, dst=right, src=left)
