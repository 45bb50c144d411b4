"""Exercise 10: hints that no variant of it meets, and a verdict as it is read."""

import pytest
import torch

from distlab.checks import ring_all_reduce as checks
from distlab.checks.kit.grading import judge
from distlab.collectives.chunks import split


def ring_all_reduce(comm, tensor, ring, *, cut=split, late=0, room=torch.empty_like):
    """A right one, or with one thing wrong."""
    n, place = len(ring), ring.index(comm.rank)
    peers = {"dst": ring[(place + 1) % n], "src": ring[(place - 1) % n]}
    chunks = cut(tensor, n)
    for step in range(n - 1):
        target = chunks[(place - step - 1) % n]
        target += comm.sendrecv(chunks[(place - step) % n], room(target), **peers)
    for step in range(n - 1):
        target = chunks[(place - step - late) % n]
        comm.sendrecv(chunks[(place + 1 - step - late) % n], target, **peers)


def rebinds(comm, tensor, ring):
    ring_all_reduce(comm, tensor.clone(), ring)


def cuts_equal_chunks(comm, tensor, ring):
    ring_all_reduce(comm, tensor, ring, cut=lambda t, n: t[: len(t) // n * n].chunk(n))


def begins_with_an_incomplete_chunk(comm, tensor, ring):
    ring_all_reduce(comm, tensor, ring, late=1)


def turns_the_chunks(comm, tensor, ring):
    ring_all_reduce(comm, tensor, ring)
    tensor.copy_(tensor.roll(len(tensor) // len(ring)))


def one_length_of_buffer(comm, tensor, ring):
    ring_all_reduce(comm, tensor, ring, room=lambda _: torch.empty(3))


def one_chunk_at_a_time(comm, tensor, ring):
    n, place = len(ring), ring.index(comm.rank)
    for index, chunk in enumerate(split(tensor, n)):
        for hop in range(2 * (n - 1)):
            if place == (index + hop) % n:
                comm.send(chunk, ring[(place + 1) % n])
            elif place == (index + hop + 1) % n:
                arrived = comm.recv(torch.empty_like(chunk), ring[place - 1])
                chunk.copy_(chunk + arrived if hop < n - 1 else arrived)


def calls_torchs(comm, tensor, ring):
    torch.distributed.all_reduce(tensor)


def never_gathers(comm, tensor, ring):
    place, chunks = ring.index(comm.rank), split(tensor, len(ring))
    ring_all_reduce(comm, tensor.clone(), ring)
    total = tensor.clone()
    ring_all_reduce(comm, total, ring)
    chunks[place].copy_(split(total, len(ring))[place])


def goes_straight_to_all(comm, tensor, ring):
    n, place = len(ring), ring.index(comm.rank)
    chunks, own = split(tensor, n), tensor.clone()
    for way in range(1, n):
        peers = {"dst": ring[(place + way) % n], "src": ring[(place - way) % n]}
        arrived = torch.empty_like(chunks[place])
        outgoing = split(own, n)[(place + way) % n]
        chunks[place] += comm.sendrecv(outgoing, arrived, **peers)
    for way in range(1, n):
        peers = {"dst": ring[(place + way) % n], "src": ring[(place - way) % n]}
        comm.sendrecv(chunks[place], chunks[(place - way) % n], **peers)


def forgets_the_modulo(comm, tensor, ring):
    comm.send(tensor, ring[ring.index(comm.rank) + 1])


def sends_nothing(comm, tensor, ring):
    """Return at once."""


def goes_round_once_more(comm, tensor, ring):
    ring_all_reduce(comm, tensor, ring)
    place, chunk = ring.index(comm.rank), split(tensor, len(ring))[0]
    peers = {"dst": ring[(place + 1) % len(ring)], "src": ring[place - 1]}
    comm.sendrecv(chunk, torch.empty_like(chunk), **peers)


def shortens(comm, tensor, ring):
    ring_all_reduce(comm, tensor, ring)
    tensor.resize_(3)


@pytest.mark.parametrize(
    "wrong, length, hint",
    [
        (rebinds, 8, "Every rank ends as it began"),
        (cuts_equal_chunks, 10, "This element never travelled"),
        (begins_with_an_incomplete_chunk, 8, "A contribution is missing"),
        (turns_the_chunks, 8, "from another chunk"),
        (never_gathers, 8, "complete, but only on other ranks"),
        (goes_straight_to_all, 8, "goes elsewhere"),
        (forgets_the_modulo, 8, "who is at the next"),
        (one_length_of_buffer, 10, "receive into a buffer as long as the message"),
        (one_chunk_at_a_time, 8, "or has to wait"),
        (calls_torchs, 8, "the algorithm is the exercise"),
        (sends_nothing, 8, "No rank sent anything"),
        (goes_round_once_more, 8, "a rank sends more often than it has to"),
        (shortens, 8, "leave its length and type as they are"),
    ],
)
def test_a_mistake_meets_its_hint(wrong, length, hint):
    verdict = judge(checks.all_reduce, wrong, (4, 4, length))
    assert verdict.outcome == "fail"
    assert hint in " ".join(verdict.hints), verdict


def by_rank(comm, chunks, ring):
    n, place, rank = len(ring), ring.index(comm.rank), comm.rank
    peers = {"dst": ring[(place + 1) % n], "src": ring[place - 1]}
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        room = torch.empty_like(target)
        target += comm.sendrecv(chunks[(rank - step) % n], room, **peers)
    return (rank + 1) % n


def the_same_chunk(comm, chunks, ring):
    n, place = len(ring), ring.index(comm.rank)
    peers = {"dst": ring[(place + 1) % n], "src": ring[place - 1]}
    for _ in range(n - 1):
        target = chunks[place - 1]
        target += comm.sendrecv(chunks[place], torch.empty_like(target), **peers)
    return place


def test_hints_agree_with_the_run_that_is_played():
    for case in ((4, 4, 8), (3, 5, 9)):  # also where ranks are left out of the ring
        verdict = judge(checks.reduce_scatter, the_same_chunk, case)
        assert "sends the same chunk" in verdict.hints[0]
        sent = verdict.picture.trace.shares.sent.values()
        assert all(len({each.chunks for each in payloads}) == 1 for payloads in sent)
    right = judge(checks.reduce_scatter, names_none, (4, 4, 8))
    assert "with all stripes" in right.hints[1]  # there is one on every rank
    wrong = judge(checks.reduce_scatter, sends_nothing, (4, 4, 8))
    assert "No rank sent anything" in wrong.hints[0]


def names_none(comm, chunks, ring):
    n, place = len(ring), ring.index(comm.rank)
    peers = {"dst": ring[(place + 1) % n], "src": ring[place - 1]}
    for step in range(n - 1):
        target = chunks[(place - step - 1) % n]
        outgoing = chunks[(place - step) % n]
        target += comm.sendrecv(outgoing, torch.empty_like(target), **peers)


def test_a_ring_is_never_in_order_so_that_ranks_are_not_taken_for_places():
    for _ in range(8):
        assert judge(checks.reduce_scatter, by_rank, (4, 4, 8)).outcome == "fail"
    rings = [checks._drawn_ring(n, world) for n, world in [(4, 4), (3, 5)] * 200]
    for ring in rings:
        turns = {
            (b - a) % len(ring) for a, b in zip(ring, ring[1:] + ring[:1], strict=True)
        }
        assert turns not in ({1}, {len(ring) - 1})


def test_a_table_says_whose_contributions_are_there():
    verdict = judge(checks.all_reduce, rebinds, (2, 2, 3))
    assert verdict.found.splitlines()[:4] == [
        "  rank  expected       yours",
        "     0  0+1, 0+1, 0+1  0, 0, 0  ← first difference",
        "     1  0+1, 0+1, 0+1  1, 1, 1",
        "(0+1: the contributions of ranks 0 and 1 are in this sum)",
    ]
    assert "The ring was [" in verdict.found


def test_the_times_are_those_of_the_notebook():
    def flat(comm, tensor, per_node):
        ring_all_reduce(comm, tensor, list(range(comm.world_size)))

    verdict = judge(checks.hierarchical, flat, (2, 4, 2**16))
    assert "It took 175 µs; the target is 48.6 µs." in verdict.found
    assert "0, 0, 0, 458752, 0, 0, 0, 458752" in verdict.found
