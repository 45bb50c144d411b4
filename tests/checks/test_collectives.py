"""Exercise 09: who had a tensor when, and hints that no variant of it meets."""

import pytest
import torch
from traces import message

from distlab.checks import collectives as checks
from distlab.checks.kit.grading import judge
from distlab.trace import Trace


def tree(comm, tensor, root=0):
    n, distance = comm.world_size, 1
    place = (comm.rank - root) % n
    while distance < n:
        if place < distance and place + distance < n:
            comm.send(tensor, (comm.rank + distance) % n)
        elif distance <= place < 2 * distance:
            comm.recv(tensor, (comm.rank - distance) % n)
        distance *= 2


def doubling(comm, pieces, *, first=0, turn=0):
    """Bruck's all-gather, or with one thing wrong."""
    n, rank, distance = comm.world_size, comm.rank, 1
    while distance < n:
        ahead, count = (rank + distance) % n, min(distance, n - distance)
        outgoing = torch.stack([pieces[(rank + first + i) % n] for i in range(count)])
        arrived = torch.empty_like(outgoing)
        comm.sendrecv(outgoing, arrived, dst=(rank - distance) % n, src=ahead)
        for i, piece in enumerate(arrived):
            pieces[(ahead + turn + i) % n].copy_(piece)
        distance *= 2


def once_more(comm, tensor):
    tree(comm, tensor)
    if comm.rank < 2:
        (comm.send if comm.rank else comm.recv)(tensor, 1 - comm.rank)


def adds_to_zero(comm, tensor):
    if comm.rank == 0:
        return comm.send(tensor, 1)
    tensor *= 0
    tensor += comm.recv(torch.empty_like(tensor), 0)


def new_list(comm, pieces):
    copies = [piece.clone() for piece in pieces]
    doubling(comm, copies)
    pieces[:] = copies


def garbage_first(comm, pieces):
    doubling(comm, pieces, first=1)


def own_place(comm, pieces):
    doubling(comm, pieces, turn=-1)


@pytest.mark.parametrize(
    "check, wrong, case, hint",
    [
        (checks.broadcast, once_more, (4,), "or to a rank that has it"),
        (checks.broadcast, adds_to_zero, (2,), "NaN plus anything is NaN"),
        (checks.all_gather, new_list, (4, 3), "What was given is unchanged"),
        (checks.all_gather, garbage_first, (4, 3), "garbage was sent in its place"),
        (checks.all_gather, own_place, (2, 3), "an own chunk are never received into"),
    ],
)
def test_a_mistake_meets_its_hint(check, wrong, case, hint):
    verdict = judge(check, wrong, case)
    assert verdict.outcome == "fail"
    assert hint in " ".join(verdict.hints), verdict


@pytest.mark.parametrize("world", [(1, 4, 0), (5, 0, 3), (9, 1, 4)])
def test_a_tree_passes(world):
    assert judge(checks.broadcast_from, tree, world).outcome == "pass"


def spread(n, *messages, root=0):
    return checks.spread(Trace(n, [event for pair in messages for event in pair]), root)


def test_messages_tell_which_rank_had_the_tensor_when():
    assert spread(3, message(0, 1, 0, 1), message(1, 2, 1, 2)) == ([], [], [])
    late = spread(3, message(1, 2, 0, 1), message(0, 1, 1, 2))
    assert late == ([(1, 2)], [], [2])
    assert spread(2, message(0, 1, 0, 1), message(1, 0, 1, 2)) == ([], [0], [])
