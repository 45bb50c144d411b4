"""Receiving from any rank, and waiting for any request, wherever the ranks run."""

import pytest
import torch

from distlab import Deadlock, RankRaised, run
from distlab.launch import Relaying
from distlab.links import Link
from distlab.simulated import Uniform

FABRIC = Uniform(Link(latency_s=0.001, bytes_per_s=1e9))
VIRTUAL = {
    "simulated": {"fabric": FABRIC},
    "relay": {"relayed": Relaying(fabric=FABRIC)},
}
PLACES = {"processes": {}, "relayed": {"relayed": True}} | VIRTUAL
everywhere = pytest.mark.parametrize("place", PLACES)
on_virtual_clocks = pytest.mark.parametrize("place", VIRTUAL)


def collects(comm):
    """The last rank sends first; rank 0 takes what comes."""
    if comm.rank:
        for mark in "ab":
            with comm.work("think", seconds=0.02 * (comm.world_size - comm.rank)):
                pass
            comm.send(torch.tensor([comm.rank, ord(mark)]), 0)
        return None
    buffer = torch.zeros(2, dtype=torch.int64)
    taken = range(2 * (comm.world_size - 1))
    return [(comm.recv_any(buffer), *buffer.tolist()) for _ in taken]


@everywhere
def test_a_message_of_any_rank_is_told_with_its_sender_and_none_is_lost(place):
    taken = run(collects, 4, **PLACES[place]).results[0]
    assert all(source == sender for source, sender, _ in taken)
    wanted = [(rank, ord(mark)) for rank in (1, 2, 3) for mark in "ab"]
    assert sorted(each[1:] for each in taken) == wanted


@on_virtual_clocks
def test_on_a_virtual_clock_the_message_that_was_sent_first_is_received(place):
    # sent at 20 and 40 ms and 1 ms of sending later, 40 and 81, 60 and 121
    report = run(collects, 4, **PLACES[place])
    assert [source for source, *_ in report.results[0]] == [3, 2, 3, 1, 2, 1]
    again = run(collects, 4, **PLACES[place])
    assert again.trace.events == report.trace.events


def both_ways(comm):
    """Begin all steps of a ring with isendrecv before waiting for any."""
    n, rank = comm.world_size, comm.rank
    rooms = [torch.zeros(2, dtype=torch.int64) for _ in range(3)]
    requests = [
        comm.isendrecv(
            torch.tensor([rank, step]), room, dst=(rank + 1) % n, src=(rank - 1) % n
        )
        for step, room in enumerate(rooms)
    ]
    return [request.wait().tolist() for request in requests]


@everywhere
def test_exchanges_in_flight_together_arrive_in_order(place):
    report = run(both_ways, 3, **PLACES[place])
    assert report.results == [
        [[(rank - 1) % 3, step] for step in range(3)] for rank in range(3)
    ]
    assert report.trace.rounds() == 1
    assert report.trace.messages_sent(0) == 3
    assert report.trace.bytes_received(0) == 48


@everywhere
def test_an_exchange_that_the_other_side_never_joins_is_a_deadlock(place):
    def alone(comm):
        if comm.rank == 0:
            comm.isendrecv(torch.ones(1), torch.zeros(1), dst=1, src=1).wait()
        else:
            comm.recv(torch.zeros(1), 0)
            comm.recv(torch.zeros(1), 0)

    with pytest.raises(Deadlock, match="rank 0"):
        run(alone, 2, **PLACES[place])


def alternates(comm):
    if comm.rank:
        requests = [comm.isend(torch.ones(1), 0) for _ in range(3)]
        comm.barrier()
        return [request.wait() for request in requests] and None
    comm.barrier()
    return [comm.recv_any(torch.zeros(1)) for _ in range(6)]


def test_no_rank_that_has_sent_is_kept_waiting_for_another():
    assert run(alternates, 3).results[0] == [1, 2] * 3


def awaits(comm):
    """Rank 0 learns of the others' messages as they end, also of what it started."""
    if comm.rank:
        with comm.work("think", seconds=0.03 * (comm.world_size - comm.rank)):
            pass
        comm.send(torch.tensor([comm.rank]), 0)
        return None
    left = {r: comm.irecv(torch.zeros(1, dtype=torch.int64), r) for r in (1, 2)}
    left["started"] = comm.start(lambda c: c.recv(torch.zeros(1, dtype=torch.int64), 3))
    order = []
    while left:
        key = list(left)[comm.wait_any(list(left.values()))]
        done = left.pop(key)
        assert done.is_completed()
        order.append((key, done.wait().item()))
    return order


@everywhere
def test_requests_are_waited_for_as_they_end(place):
    order = run(awaits, 4, **PLACES[place]).results[0]
    wanted = [("started", 3), (2, 2), (1, 1)]
    if place != "simulated":  # where time alone decides
        order, wanted = sorted(order, key=str), sorted(wanted, key=str)
    assert order == wanted


def polls(comm):
    buffer, other = torch.zeros(1), 1 - comm.rank
    if comm.rank:
        comm.recv(buffer, other)
        comm.send(torch.ones(1), other)
        return None
    request = comm.irecv(buffer, other)
    early = request.is_completed()
    comm.send(torch.ones(1), other)
    while not request.is_completed():
        pass
    return early, request.wait().item()


@everywhere
def test_a_receive_is_completed_without_a_wait_once_the_message_is_there(place):
    assert run(polls, 2, **PLACES[place]).results[0] == (False, 1.0)


def any_for_nobody(comm):
    if comm.rank == 0:
        comm.recv_any(torch.zeros(1))


def any_for_each_other(comm):
    comm.recv_any(torch.zeros(1))


def one_of_two(comm):
    requests = [comm.irecv(torch.zeros(1), 1), comm.irecv(torch.zeros(1), 2)]
    comm.wait_any(requests)


STUCK = {
    any_for_nobody: "rank 0 waits in recv_any, but ranks 1 and 2 have returned",
    any_for_each_other: "each waits for the next: rank 0 → rank 1 → rank 0",
    one_of_two: "rank 0 waits in wait_any, but ranks 1 and 2 have returned",
}


def polled_before(comm, stuck):
    """A rank that has asked for a request is found in a deadlock as any other."""
    if comm.rank == 1:
        comm.send(torch.ones(1), 0)
    if comm.rank == 0:
        request = comm.irecv(torch.zeros(1), 1)
        while not request.is_completed():
            pass
    if comm.rank == 0 or stuck is not one_of_two:
        stuck(comm)


@everywhere
@pytest.mark.parametrize("stuck", STUCK)
def test_a_wait_for_any_that_nobody_can_end_is_a_deadlock(place, stuck):
    with pytest.raises(Deadlock) as caught:
        run(polled_before, 3, args=(stuck,), timeout_s=20, **PLACES[place])
    assert STUCK[stuck] in str(caught.value)


def one_has_returned(comm):
    if comm.rank == 0:
        return comm.recv_any(torch.zeros(1))
    if comm.rank == 1:
        with comm.work("think", seconds=0.3):  # longer than a deadlock is looked for
            pass
        comm.send(torch.ones(1), 0)


@everywhere
def test_a_wait_for_any_is_no_deadlock_while_one_rank_may_send(place):
    assert run(one_has_returned, 3, **PLACES[place]).results[0] == 1


def does_not_fit(comm):
    if comm.rank:
        comm.send(torch.ones(2), 0)
    else:
        comm.recv_any(torch.zeros(3))


@everywhere
def test_what_does_not_fit_is_told(place):
    with pytest.raises(RankRaised, match="12 bytes of float32"):
        run(does_not_fit, 2, **PLACES[place])


@everywhere
def test_there_must_be_something_to_wait_for(place):
    with pytest.raises(RankRaised, match="got none"):
        run(lambda comm: comm.wait_any([]), 2, **PLACES[place])
    with pytest.raises(RankRaised, match="no other that sends"):
        run(lambda comm: comm.recv_any(torch.zeros(1)), 1, **PLACES[place])


@on_virtual_clocks
def test_work_takes_its_seconds_of_the_virtual_clock(place):
    def works(comm):
        with comm.work("long", seconds=1000):
            pass
        comm.sendrecv(
            torch.ones(1), torch.ones(1), dst=1 - comm.rank, src=1 - comm.rank
        )

    report = run(works, 2, **PLACES[place])
    assert report.elapsed_s == pytest.approx(1000.001, abs=1e-6)
