"""A failed check of ranks shows the run, and of the library's no more than it must."""

import base64

import pytest
import torch

from distlab.collectives.chunks import split
from distlab.grading import (
    AllReduceSums,
    BroadcastInRounds,
    ReduceScatterSums,
    SpeaksInOrder,
)
from distlab.grading.verdict import judged


def ring(comm, tensor, *, way=1, first=0, late=0):
    """The whole ring, either way, from any chunk; late: the second lap's mistake."""
    n, rank = comm.world_size, first + way * comm.rank
    peers = {"dst": (comm.rank + way) % n, "src": (comm.rank - way) % n}
    chunks = split(tensor, n)
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(target)
        target += comm.sendrecv(chunks[(rank - step) % n], arrived, **peers)
    for step in range(n - 1):
        target = chunks[(rank - step - late) % n]
        comm.sendrecv(chunks[(rank + 1 - step - late) % n], target, **peers)


def late(comm, tensor):
    ring(comm, tensor, late=1)


def late_the_other_way(comm, tensor):
    ring(comm, tensor, way=-1, first=2, late=1)


def all_send_first(comm, tensor):
    comm.send(tensor, (comm.rank + 1) % comm.world_size)


def wrong_name(comm, chunks):
    n, rank = comm.world_size, comm.rank
    arrived = torch.empty_like(chunks[0])
    for step in range(n - 1):
        peers = {"dst": (rank + 1) % n, "src": (rank - 1) % n}
        comm.sendrecv(chunks[(rank - step) % n], arrived, **peers)
        chunks[(rank - step - 1) % n].add_(arrived)
    return rank


def from_rank_0(comm, tensor):
    for other in range(1, comm.world_size):
        if comm.rank == 0:
            comm.send(tensor, other)
        elif comm.rank == other:
            comm.recv(tensor, 0)


def near_ranks_only(comm, tensor):
    if comm.rank == 0:
        comm.send(tensor, 1)
    elif comm.rank == 1:
        comm.recv(tensor, 0)


def silent(comm, tensor):
    """Send nothing."""


def nobody_waits(comm, speak):
    speak()
    if comm.rank == 0:
        comm.send_object(1, 1)
    if comm.rank == 1:
        comm.recv_object(0)


def shown(check):
    verdict = judged(check)
    assert verdict.outcome == "fail", verdict
    return verdict, verdict.picture


@pytest.mark.parametrize("function", [late, late_the_other_way])
def test_a_ring_is_compared_with_one_that_begins_as_it_does(function):
    verdict, picture = shown(AllReduceSums(function, 4, 8))
    both = picture.player
    assert both.stop == 4 and "chunk" in both.difference
    assert len(both.ideal.frames) == 5, "the library's run goes on after that"
    assert both.ideal.frames[-1].tables.values() != {(1, 1, 1, 1)}
    drawn = verdict.drawn()
    assert len(base64.b64decode(drawn["image/png"])) < 150_000
    assert len(drawn["text/html"]) < 1_000_000


def test_a_run_like_the_librarys_is_played_alone():
    _, picture = shown(ReduceScatterSums(wrong_name, 4, 8))
    assert not hasattr(picture.player, "ideal")
    assert picture.player.film.chunks == 4


def test_a_deadlock_is_played_up_to_there():
    _, picture = shown(AllReduceSums(all_send_first, 4, 8))
    both = picture.player
    assert both.stop == 1 and "goes no further" in both.difference
    assert len(both.ideal.frames) == 2


def test_a_tree_is_compared_unless_it_begins_in_another_order():
    _, picture = shown(BroadcastInRounds(from_rank_0, 4))
    assert picture.player.stop == 2 and "rank 1 sends" in picture.player.difference
    _, picture = shown(BroadcastInRounds(near_ranks_only, 6))
    assert not hasattr(picture.player, "ideal")


def test_who_sent_nothing_has_no_picture():
    _, picture = shown(AllReduceSums(silent, 4, 8))
    assert picture is None


def test_the_checks_own_words_are_not_in_the_picture():
    _, picture = shown(SpeaksInOrder(nobody_waits, 3))
    html = picture._repr_mimebundle_()["text/html"]
    assert "(check)" not in html and "speak begins" in html
