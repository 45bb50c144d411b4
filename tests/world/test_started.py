"""`Comm.start`: collectives on the side, in one order, never lost, never hung."""

import pytest
import torch
from stores import wait_until

from distlab import Deadlock, Kill, MessageMismatch, RankDied, RankRaised, run
from distlab.collectives import ring_all_reduce, tree_all_reduce
from distlab.links import Link
from distlab.simulated import Uniform

SIZES = [1, 2, 3, 4]
SIMULATED = Uniform(Link(1e-6, 1e9))


def sums(comm, count):
    tensors = [torch.full((1000,), float(comm.rank + k)) for k in range(count)]
    requests = [comm.start(ring_all_reduce, tensor) for tensor in tensors]
    for request in requests:
        request.wait()
    return [tensor[0].item() for tensor in tensors]


@pytest.mark.parametrize("n", SIZES)
def test_what_was_started_computes_what_it_would_have_at_once(worlds, n):
    total = n * (n - 1) / 2
    assert worlds[n].run(sums, 3).results == [[total, total + n, total + 2 * n]] * n


def test_a_simulated_rank_starts_collectives_too():
    results = run(sums, 5, args=(2,), fabric=SIMULATED).results
    assert results == [[10.0, 15.0]] * 5


def test_the_rank_goes_on_while_a_collective_waits_for_the_others(worlds, tmp_path):
    gone_on = tmp_path / "gone on"

    def both(comm):
        if comm.rank == 0:
            request = comm.start(tree_all_reduce, torch.ones(10))
            gone_on.touch()
            return request.wait()
        wait_until(gone_on.exists)
        return tree_all_reduce(comm, torch.ones(10))

    assert worlds[2].run(both).results == [None, None]


def test_what_is_started_later_runs_later(worlds):
    def in_order(comm):
        done = []
        for name in "abc":
            comm.start(lambda comm, name=name: done.append(name))
        comm.barrier()
        return done

    assert worlds[2].run(in_order).results == [["a", "b", "c"]] * 2


def test_another_call_waits_for_what_was_started_before(worlds):
    def mixes(comm):
        tensor = torch.full((100_000,), float(comm.rank))
        comm.start(ring_all_reduce, tensor)
        comm.barrier()
        return tensor.unique().tolist()

    assert worlds[3].run(mixes).results == [[3.0]] * 3


def test_a_function_that_returns_has_its_collectives_ended_first(worlds):
    def forgets(comm):
        tensor = torch.full((100_000,), float(comm.rank))
        comm.start(ring_all_reduce, tensor)
        return tensor

    for tensor in worlds[3].run(forgets).results:
        assert tensor.unique().tolist() == [3.0]


def test_an_error_in_a_collective_comes_out_of_its_wait_or_of_the_call():
    def fails(comm):
        raise ValueError("inside")

    def waits(comm):
        comm.start(fails).wait()

    def returns(comm):
        comm.start(fails)

    for fn in (waits, returns):
        with pytest.raises(RankRaised, match="ValueError: inside"):
            run(fn, 2)


def test_an_error_that_waits_for_its_wait_is_told_once_simulated_ranks_are_stuck():
    def differs(comm):
        request = comm.start(ring_all_reduce, torch.ones(8 + 3 * (comm.rank == 1)))
        comm.barrier()
        request.wait()

    def raises(comm):
        def fails(comm):
            if comm.rank == 1:
                raise ValueError("inside")
            ring_all_reduce(comm, torch.ones(8))

        request = comm.start(fails)
        if comm.rank != 1:
            comm.wait_any([request])
        comm.barrier()

    for fn, kind in ((differs, MessageMismatch), (raises, ValueError)):
        with pytest.raises(RankRaised, match="rank 1 raised") as raised:
            run(fn, 3, fabric=SIMULATED)
        assert isinstance(raised.value.cause, kind) and raised.value.rank == 1


def test_a_simulated_collective_that_waits_for_one_after_it_is_a_deadlock():
    def inside(comm):
        comm.start(ring_all_reduce, torch.ones(4)).wait()

    def waits(comm):
        comm.start(inside).wait()

    with pytest.raises(Deadlock, match="ranks 0, 1 and 2 wait, and none can continue"):
        run(waits, 3, fabric=SIMULATED)


def test_a_deadlock_on_the_side_is_recognised_and_not_timed_out():
    def one_skips(comm):
        if comm.rank != 2:
            comm.start(ring_all_reduce, torch.ones(4)).wait()

    with pytest.raises(Deadlock, match="rank 2 has returned"):
        run(one_skips, 4, timeout_s=60)


def test_a_rank_that_dies_is_named_while_the_others_wait_on_the_side():
    with pytest.raises(RankDied, match="rank 1 was killed"):
        run(sums, 4, args=(3,), faults=[Kill(rank=1, step=4)])


def test_steps_and_marks_of_both_threads_are_all_in_the_trace(worlds):
    def marks(comm):
        requests = []
        for k in range(50):
            comm.mark(f"layer {k}")
            requests.append(comm.start(ring_all_reduce, torch.ones(8)))
        for request in requests:
            request.wait()

    trace = worlds[2].run(marks).trace
    for rank in range(2):
        labels = [event.label for event in trace.of(rank, "mark")]
        assert [x for x in labels if x.startswith("layer")] == [
            f"layer {k}" for k in range(50)
        ]
        assert trace.messages_sent(rank) == 100


def test_work_is_an_event_that_can_overlap_with_messages(worlds):
    def overlaps(comm):
        with comm.work("backward"):
            comm.start(ring_all_reduce, torch.ones(400_000)).wait()

    trace = worlds[2].run(overlaps).trace
    for rank in range(2):
        (work,) = trace.of(rank, "work")
        sends = trace.of(rank, "send")
        assert work.label == "backward"
        assert work.start < sends[-1].end <= work.end


def test_simulated_work_takes_the_time_of_the_virtual_clock():
    def works(comm):
        with comm.work("forward"):
            comm.compute(0.5)

    (work,) = run(works, 1, fabric=SIMULATED).trace.of(0, "work")
    assert (work.label, work.start, work.end) == ("forward", 0.0, 0.5)


@pytest.mark.parametrize("count", [63, 64, 65, 200])
def test_many_messages_may_be_under_way_together(worlds, count):
    def floods(comm):
        other, rooms = 1 - comm.rank, [torch.zeros(1 + k % 3) for k in range(count)]
        arriving = [comm.irecv(room, other) for room in rooms]
        going = [
            comm.isend(torch.full((1 + k % 3,), float(k)), other) for k in range(count)
        ]
        for request in [*arriving, *going]:
            request.wait()
        return [room[0].item() for room in rooms]

    assert worlds[2].run(floods).results == [[float(k) for k in range(count)]] * 2
