"""`follow` describes a wrong algorithm as truly as a right one, where it goes wrong."""

import pytest
import torch

from distlab import follow
from distlab.collectives import ring_all_reduce
from distlab.show.player.animation import Animation


def frames_of(fn, n=3, **options):
    return Animation(follow(fn, n, **options).trace).frames


def chain(comm, tensor, arrive):
    """Send to the left, from the last rank to rank 0; `arrive` takes what comes."""
    if comm.rank < comm.world_size - 1:
        room = torch.empty_like(tensor)
        arrive(tensor, comm.recv(room, comm.rank + 1))
    if comm.rank > 0:
        comm.send(tensor, comm.rank - 1)


def test_a_lost_share_is_named_where_it_is_lost():
    def loses(comm, tensor):
        chain(comm, tensor, lambda here, arrived: here.copy_(arrived))

    first, second = frames_of(loses)[1:]
    assert "What arrives replaces what was there." in first.text
    assert "Rank 1 loses the contribution of rank 1." in first.text
    assert "Rank 0 loses the contribution of rank 0." in second.text
    assert second.tables == {(r, 0): (0, 0, 1) for r in range(3)}
    assert "At the end 0 of 3 tensors are complete." in second.text


def test_a_share_that_is_lost_to_a_larger_sum_is_named_too():
    def loses(comm, tensor):
        adds = comm.rank == 1
        chain(comm, tensor, torch.Tensor.add_ if adds else torch.Tensor.copy_)

    _, second = frames_of(loses)[1:]
    assert second.tables[0, 0] == (0, 1, 1)
    assert "Rank 0 loses the contribution of rank 0." in second.text


def test_a_share_that_counts_twice_is_named_with_its_rank():
    def doubles(comm, tensor):
        chain(comm, tensor, lambda here, arrived: here.add_(arrived, alpha=2))

    first, second = frames_of(doubles)[1:]
    assert "Rank 1 counts the contribution of rank 2 more than once." in first.text
    described = "Rank 0 counts the contributions of ranks 1, 2 more than once."
    assert described in second.text
    assert second.tables[0, 0] == (1, 2, 4)


def test_a_chunk_in_the_wrong_place_is_no_sum_and_not_complete():
    def misplaces(comm, tensor):
        chain(comm, tensor, lambda here, arrived: here[:5].add_(arrived[5:10]))

    frames = frames_of(misplaces, 2, numbers=10)
    assert frames[-1].tables[0, 0] is None and frames[-1].tables[0, 1] == (1, 0)
    assert (
        "Chunk 0 on rank 0 is no sum of whole contributions any more."
        in frames[-1].text
    )
    assert "At the end 0 of 4 chunks are complete." in frames[-1].text


def test_an_average_is_no_sum_of_whole_shares():
    def averages(comm, tensor):
        ring_all_reduce(comm, tensor)
        tensor /= comm.world_size

    last = frames_of(averages)[-1]
    assert set(last.tables.values()) == {None}
    assert "is no sum of whole contributions any more" in last.text
    assert (
        "At the end 0 of 9 chunks are complete." in last.text
        and "is now complete" not in last.text
    )


@pytest.mark.parametrize("garbage", [3e-41, float("nan"), 1e30, -1.0])
def test_what_was_left_in_memory_is_no_sum_of_whole_shares(garbage):
    def adds_room(comm, tensor):
        chain(comm, tensor, lambda here, arrived: here.add_(arrived + garbage))

    last = frames_of(adds_room, 2)[-1]
    tables = [last.tables[0, chunk] for chunk in range(len(last.tables) // 2)]
    if garbage == 3e-41:  # too little to change a sum: nothing is wrong yet
        assert tables == [(1, 1)]
    else:
        assert tables == [None] and "no sum of whole contributions" in last.text
