"""What the checks of a broadcast and an all-gather say of each way to get it wrong.

The variants of the exercise, in tests/lessons, go the whole way through nbgrader; here
are more mistakes, each straight to the check that should notice it.
"""

import math

import pytest
import torch

from distlab import collectives
from distlab.calls.places import learners_frames
from distlab.collectives import bruck_all_gather, tree_broadcast
from distlab.grading import AllGatherInRounds, BroadcastInRounds, check
from distlab.grading.rings.broadcast import _named


def tree(comm, tensor, root=0, *, factor=2, rounds=math.inf):
    n, rank = comm.world_size, comm.rank
    place, distance = (rank - root) % n, 1
    while distance < n and rounds:
        if place < distance and place + distance < n:
            comm.send(tensor, (rank + distance) % n)
        elif distance <= place < 2 * distance:
            comm.recv(tensor, (rank - distance) % n)
        distance, rounds = distance * factor, rounds - 1


def doubling(comm, pieces, *, first=0, turn=0, short=0):
    """Bruck's all-gather, with one thing wrong if asked for."""
    n, rank, distance = comm.world_size, comm.rank, 1
    while distance < n:
        ahead, count = (rank + distance) % n, min(distance, n - distance)
        outgoing = torch.stack([pieces[(rank + first + i) % n] for i in range(count)])
        arrived = torch.empty(count + short, *pieces[0].shape)
        comm.sendrecv(outgoing, arrived, dst=(rank - distance) % n, src=ahead)
        for i, piece in enumerate(arrived):
            pieces[(ahead + turn + i) % n].copy_(piece)
        distance *= 2


# ---- a broadcast ----------------------------------------------------------------


def place_for_rank(comm, tensor, root):
    place, distance = (comm.rank - root) % comm.world_size, 1
    while distance < comm.world_size:
        if place < distance:
            comm.send(tensor, place + distance)
        elif place < 2 * distance:
            comm.recv(tensor, place - distance)
        distance *= 2


def places_below_0(comm, tensor, root):
    place, distance = comm.rank - root, 1
    while distance < comm.world_size:
        if place < distance:
            comm.send(tensor, (comm.rank + distance) % comm.world_size)
        elif place < 2 * distance:
            comm.recv(tensor, (comm.rank - distance) % comm.world_size)
        distance *= 2


def exchange(comm, tensor):
    distance = 1
    while distance < comm.world_size:
        peer = comm.rank ^ distance
        room = torch.empty_like(tensor)
        tensor.copy_(comm.sendrecv(tensor, room, dst=peer, src=peer))
        distance *= 2


def adds_to_zero(comm, tensor, root):
    if comm.rank == root:
        comm.send(tensor, 1 - root)
    else:
        tensor *= 0
        tensor += comm.recv(torch.empty_like(tensor), root)


def near_ranks_first(comm, tensor):
    lowest = comm.rank & -comm.rank or comm.world_size
    if comm.rank:
        comm.recv(tensor, comm.rank - lowest)
    distance = 1
    while distance < lowest:
        comm.send(tensor, comm.rank + distance)
        distance *= 2


def chain(comm, tensor):
    if comm.rank > 0:
        comm.recv(tensor, comm.rank - 1)
    if comm.rank < comm.world_size - 1:
        comm.send(tensor, comm.rank + 1)


def ready_made(comm, tensor):
    torch.distributed.broadcast(tensor, 0)


def twice(comm, tensor):
    tree(comm, tensor)
    if comm.rank < 2:
        (comm.send if comm.rank else comm.recv)(tensor, 1 - comm.rank)


def three_rounds(comm, tensor):
    tree(comm, tensor, rounds=3)


def for_ever_in_large_worlds(comm, tensor):
    tree(comm, tensor, factor=2 if comm.world_size <= 8 else 1)


def borrowed(comm, tensor):
    tree_broadcast(comm, tensor)


def only_with_numbers(comm, tensor, root):
    if tensor.numel():
        tree(comm, tensor, root)
    elif comm.rank < 2:
        (comm.recv if comm.rank else comm.send)(tensor, 1 - comm.rank)


BROADCASTS = {
    "a place is taken for a rank": (place_for_rank, (4, 5, 2), "is one taken for"),
    "a place is below 0": (places_below_0, (4, 5, 2), "are never below 0"),
    "the root receives": (exchange, (2,), "The root lost its own tensor"),
    "NaN stays": (adds_to_zero, (2, 3, 1), "not to be added to"),
    "a tree too deep": (near_ranks_first, (4,), "stand idle"),
    "a chain": (chain, (4,), "a chain"),
    "torch's own": (ready_made, (2,), "Write it from comm.send and comm.recv"),
    "one message more": (twice, (4,), "receives exactly once"),
    "too few rounds": (three_rounds, (16,), "ranks 8, 9, 10, 11, 12, 13 and 2 more"),
    "the library": (borrowed, (2,), "Nothing of your own"),
    "no numbers, few messages": (
        only_with_numbers,
        (3, 0, 0),
        "Nobody sends to rank 2",
    ),
}


@pytest.mark.parametrize("name", BROADCASTS)
def test_a_wrong_broadcast_meets_the_hint_that_fits(name):
    function, world, hint = BROADCASTS[name]
    verdict = BroadcastInRounds(function, *world).judge()
    assert verdict.outcome == "fail", verdict
    assert hint in " ".join(str(verdict).split()), verdict


@pytest.mark.parametrize("world", [(1,), (8,), (64,), (5, 3, 4), (5, 0, 3), (37, 2, 9)])
def test_a_tree_passes(world):
    verdict = BroadcastInRounds(tree, *world).judge()
    assert verdict.outcome == "pass", verdict


def test_ranks_are_named_as_long_as_they_are_few():
    assert [_named([2]), _named([4, 5])] == ["rank 2", "ranks 4 and 5"]
    assert _named(list(range(9))) == "ranks 0, 1, 2, 3, 4, 5 and 3 more"


# ---- an all-gather --------------------------------------------------------------


def partner_by_bits(comm, pieces):
    partner = comm.rank ^ 1
    room = torch.empty_like(pieces[0])
    comm.sendrecv(pieces[comm.rank], room, dst=partner, src=partner)


def by_way_of_rank_0(comm, pieces):
    if comm.rank:
        comm.send(pieces[comm.rank], 0)
    else:
        for peer in range(1, comm.world_size):
            comm.recv(pieces[peer], peer)
    whole = torch.stack(pieces)
    tree(comm, whole)
    for piece, row in zip(pieces, whole, strict=True):
        piece.copy_(row)


def one_message_each(comm, pieces):
    n, rank, distance = comm.world_size, comm.rank, 1
    while distance < n:
        for i in range(min(distance, n - distance)):
            outgoing, target = pieces[(rank + i) % n], pieces[(rank + distance + i) % n]
            behind, ahead = (rank - distance) % n, (rank + distance) % n
            comm.sendrecv(outgoing, target, dst=behind, src=ahead)
        distance *= 2


def from_each_to_each(comm, pieces):
    n, rank = comm.world_size, comm.rank
    for k in range(1, n):
        target = pieces[(rank - k) % n]
        comm.sendrecv(pieces[rank], target, dst=(rank + k) % n, src=(rank - k) % n)


def all_at_once(comm, pieces):
    others = [rank for rank in range(comm.world_size) if rank != comm.rank]
    requests = [comm.irecv(pieces[rank], rank) for rank in others]
    requests += [comm.isend(pieces[comm.rank], rank) for rank in others]
    for request in requests:
        request.wait()


def both_ways(comm, pieces):
    n, rank = comm.world_size, comm.rank
    ahead = (rank + 1) % n
    comm.sendrecv(pieces[rank], pieces[ahead], dst=ahead, src=ahead)


def new_tensors(comm, pieces):
    copies = [piece.clone() for piece in pieces]
    doubling(comm, copies)
    pieces[:] = copies


def ready_made_list(comm, pieces):
    torch.distributed.all_gather(pieces, pieces[comm.rank].clone())


def returned(comm, pieces):
    copies = [piece.clone() for piece in pieces]
    doubling(comm, copies)
    return copies


def borrowed_list(comm, pieces):
    return bruck_all_gather(comm, pieces[comm.rank])


GATHERS = {
    "partners by bits": (partner_by_bits, 3, "any number of ranks finds its partners"),
    "all through one": (by_way_of_rank_0, 4, "nobody is special"),
    "a message a piece": (one_message_each, 4, "makes one message of several"),
    "directly": (from_each_to_each, 4, "from the rank that brought it"),
    "begun together": (all_at_once, 16, "in an order that is not yours"),
    "no pairs": (both_ways, 3, "does each dst expect you as its src"),
    "new tensors": (new_tensors, 4, "Your list holds the right pieces, in new tensors"),
    "torch's own": (ready_made_list, 2, "Write it from comm.sendrecv"),
    "returned": (returned, 4, "The list that you return is right"),
    "the library": (borrowed_list, 4, "Nothing of your own"),
}
SLIPS = {
    "own piece lost": ({"turn": -1}, 2, "lost its own piece"),
    "rubbish sent": ({"first": 1}, 4, "another rank's rubbish"),
    "no room": ({"short": 1}, 3, "How many pieces travel in this round"),
}


@pytest.mark.parametrize("name", GATHERS)
def test_a_wrong_all_gather_meets_the_hint_that_fits(name):
    function, n, hint = GATHERS[name]
    verdict = AllGatherInRounds(function, n).judge()
    assert verdict.outcome == "fail", verdict
    assert hint in " ".join(str(verdict).split()), verdict


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_of_an_index_is_told_from_others(name):
    slip, n, hint = SLIPS[name]
    check = AllGatherInRounds(lambda comm, pieces: doubling(comm, pieces, **slip), n)
    verdict = check.judge()
    assert verdict.outcome == "fail", verdict
    assert hint in " ".join(str(verdict).split()), verdict


@pytest.mark.parametrize("n", [1, 7, 8, 37])
def test_doubling_passes(n):
    verdict = AllGatherInRounds(doubling, n, 2).judge()
    assert verdict.outcome == "pass", verdict


# ---- simulated ranks ------------------------------------------------------------


def test_a_loop_without_end_on_simulated_ranks_ends_with_its_line(monkeypatch):
    monkeypatch.setattr(check.WorldCheck, "_timeout_s", 2)
    verdict = BroadcastInRounds(for_ever_in_large_worlds, 9).judge()
    assert "The simulated ranks still ran after 2 s, in test_coll" in verdict.found
    assert "Is there a loop that never ends" in verdict.hint


def test_a_check_locks_the_library_for_simulated_ranks_and_for_nobody_else():
    verdict = BroadcastInRounds(borrowed, 16).judge()
    assert "distlab's is locked here" in verdict.found
    assert BroadcastInRounds(tree, 2).judge().outcome == "pass"
    assert tree_broadcast.__code__.co_name == "tree_broadcast"


def test_a_failure_among_simulated_ranks_is_told_with_the_line_of_code():
    def stuck(comm, tensor):
        comm.recv(tensor, (comm.rank + 1) % comm.world_size)

    verdict = BroadcastInRounds(stuck, 9).judge()
    assert "each waits for the next: rank 0 → rank 1" in verdict.found
    assert "comm.recv(tensor, (comm.rank + 1) % comm.world_size)" in verdict.found


def test_a_long_table_shows_the_ranks_around_the_first_difference():
    found = BroadcastInRounds(three_rounds, 64).judge().found.splitlines()
    rows = [line.split()[0] for line in found[1:9]]
    assert rows == ["4", "5", "6", "7", "8", "9", "10", "11"]
    assert "← first difference" in found[5] and "and 56 more ranks" in found[9]


def test_a_rank_that_still_looks_for_an_algorithm_is_not_told_as_at_work_in_one():
    searching = (collectives.__file__, 55, "_collective_of")
    assert learners_frames([searching]) == []
    at_work = (tree_broadcast.__code__.co_filename, 40, "tree_broadcast")
    assert learners_frames([searching, at_work]) == [at_work]
