"""The pipelined ring: while one piece of a chunk is added, the next one moves.

    step 1   piece 1  moves  adds
             piece 2         moves  adds
    step 2   piece 1                moves  adds
             piece 2                       moves  adds

In the plain ring nothing moves while a chunk is added. Here two pieces are always in
progress, one moving and one being added. It pays if different hardware does the two,
such as a NIC and a processor, or a spare core. If the ranks fill all cores, one
processor does both, and nothing is gained. More than two pieces only make more
messages.
"""

from distlab.collectives.arguments import check_at_least, flat_view
from distlab.collectives.chunks import room_like, split
from distlab.collectives.reductions import SUM

__all__ = ["pipelined_ring_all_reduce"]


def pipelined_ring_all_reduce(
    comm, tensor, *, op=SUM, pieces_per_chunk: int = 2
) -> None:
    """Run both phases of a ring, one piece moving while another is added; in place.

    The piece that a rank sends in a step is the one that it added in the step before,
    a chunk of pieces earlier. With two pieces or more, that addition has ended by then.

    Cost: 2(n-1) p rounds for p pieces to a chunk; every rank sends 2(n-1)/n S, the
        least possible.
    Source: Patarasuk and Yuan (2009).
    """
    flat, n, rank = flat_view(comm, tensor, op), comm.world_size, comm.rank
    check_at_least(2, comm, "pieces_per_chunk", pieces_per_chunk)
    right, left, last = (rank + 1) % n, (rank - 1) % n, n - 2
    chunks = [split(chunk, pieces_per_chunk) for chunk in split(flat, n)]
    rooms = [room_like(chunks[0][0]) for _ in range(2)]

    def begin(number):
        step, piece = divmod(number, pieces_per_chunk)
        if piece == 0:
            phase = "reduce-scatter" if step <= last else "all-gather"
            comm.mark(f"{phase}, step {step % (n - 1) + 1} of {n - 1}")
        target = chunks[(rank - step - 1) % n][piece]
        room = rooms[number % 2][: len(target)] if step <= last else target
        outgoing = chunks[(rank - step) % n][piece]
        return step, target, comm.isendrecv(outgoing, room, dst=right, src=left)

    count = 2 * (n - 1) * pieces_per_chunk
    under_way = begin(0) if count else None
    for number in range(count):
        step, target, moving = under_way
        arrived = moving.wait()
        under_way = begin(number + 1) if number + 1 < count else None
        if step <= last:
            op.combine(target, arrived)
        if step == last:
            op.finish(target, n)
    if n == 1:
        op.finish(flat, n)
