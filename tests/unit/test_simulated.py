"""Simulated ranks: the closed forms to the last digits, and real ranks' own stories."""

import heapq
import pickle
import random

import numpy as np
import pytest

from distlab import (
    CollectiveMismatch,
    Deadlock,
    Hang,
    InvalidArgument,
    Kill,
    RankDied,
    RankRaised,
    WorldTimeout,
    cost,
    run,
)
from distlab.collectives import naive_all_reduce, ring_all_reduce, tree_all_reduce
from distlab.launch.simulate import simulate
from distlab.links import Link
from distlab.processes.memory import resident_bytes
from distlab.simulated import (
    FatTree,
    Jittered,
    Nodes,
    Payload,
    Slowed,
    SlowRank,
    Uniform,
    Wires,
)
from distlab.simulated.engine import Clock
from distlab.units import GB, MB

LINK = Link(latency_s=5e-6, bytes_per_s=12.5 * GB)
EVEN = Uniform(LINK)


def sums(comm, all_reduce, numbers):
    array = np.arange(numbers, dtype=np.float64) + comm.rank
    all_reduce(comm, array)
    return array.tolist()


# ---- time -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 8, 13, 64])
@pytest.mark.parametrize("name", ["naive", "tree", "ring"])
def test_on_equal_links_the_time_is_the_closed_form(name, n):
    algorithm = {
        "naive": naive_all_reduce,
        "tree": tree_all_reduce,
        "ring": ring_all_reduce,
    }[name]
    report = run(sums, n, args=(algorithm, 12 * n), fabric=EVEN)
    form = getattr(cost, f"{name}_all_reduce")(n, 8 * 12 * n)
    seconds = form.seconds(LINK.latency_s, LINK.bytes_per_s)
    assert report.elapsed_s == pytest.approx(seconds, rel=1e-9)
    assert report.trace.rounds() == form.rounds
    sent = [report.trace.bytes_sent(rank) for rank in range(n)]
    assert max(sent) == form.busiest_bytes
    expected = [n * i + n * (n - 1) / 2 for i in range(12 * n)]
    assert report.results == [expected] * n


def test_a_simulated_trace_counts_what_a_real_one_counts():
    simulated = run(sums, 4, args=(ring_all_reduce, 10), fabric=EVEN).trace
    real = run(sums, 4, args=(ring_all_reduce, 10)).trace
    for rank in range(4):
        assert simulated.bytes_sent(rank) == real.bytes_sent(rank)
        assert simulated.bytes_received(rank) == real.bytes_received(rank)
        assert simulated.messages_sent(rank) == real.messages_sent(rank)
        kept = [
            [(e.kind, e.peer, e.bytes, e.step, e.label) for e in trace.of(rank)]
            for trace in (simulated, real)
        ]
        assert sorted(map(str, kept[0])) == sorted(map(str, kept[1]))
    assert simulated.rounds() == real.rounds() == 6
    rounds = sorted(number for _, number in simulated.round_of_messages())
    assert rounds == sorted(number for _, number in real.round_of_messages())


def one_message(comm, src, dst, numbers):
    array = np.zeros(numbers)
    if comm.rank == src:
        comm.send(array, dst)
    elif comm.rank == dst:
        comm.recv(array, src)


def seconds_of(fabric, src, dst, n=8, numbers=1000):
    return run(one_message, n, args=(src, dst, numbers), fabric=fabric).elapsed_s


def test_nodes_have_a_fast_inside_and_share_their_nics():
    inside, outside = Link(1e-6, 100 * GB), Link(10e-6, 10 * GB)
    for nics, waits in ((1, True), (2, False)):
        fabric = Nodes(2, inside, outside, nics=nics)
        assert seconds_of(fabric, 0, 1) == pytest.approx(inside.seconds(8000))
        assert seconds_of(fabric, 1, 2) == pytest.approx(outside.seconds(8000))

        def both_leave_the_node(comm):
            one_message(comm, comm.rank % 2, 2 + comm.rank % 2, 1000)

        together = run(both_leave_the_node, 4, fabric=fabric).elapsed_s
        wait = 8000 / outside.bytes_per_s if waits else 0.0
        assert together == pytest.approx(outside.seconds(8000) + wait)


def test_an_oversubscribed_tree_is_slower_only_between_its_switches():
    def shift(comm, by):
        n, array = comm.world_size, np.zeros(1000)
        comm.sendrecv(
            array, array.copy(), dst=(comm.rank + by) % n, src=(comm.rank - by) % n
        )

    full, thin = (FatTree(4, LINK, oversubscription=o) for o in (1, 4))
    alone = LINK.seconds(8000)
    assert run(shift, 8, args=(4,), fabric=full).elapsed_s == pytest.approx(alone)
    crowded = run(shift, 8, args=(4,), fabric=thin).elapsed_s
    assert crowded == pytest.approx(alone + 3 * 8000 / LINK.bytes_per_s)
    assert seconds_of(thin, 0, 1) == pytest.approx(alone)


def test_one_slow_link_and_one_slow_rank_slow_what_uses_them():
    assert seconds_of(Slowed(EVEN, 0, 1, 3), 0, 1) == pytest.approx(
        3 * LINK.seconds(8000)
    )
    assert seconds_of(Slowed(EVEN, 0, 1, 3), 1, 0) == pytest.approx(LINK.seconds(8000))
    for src, dst, factor in ((2, 5, 4), (5, 2, 4), (3, 4, 1)):
        slow = seconds_of(SlowRank(EVEN, 2, 4), src, dst)
        assert slow == pytest.approx(factor * LINK.seconds(8000))


def test_the_same_seed_gives_the_same_trace_bit_for_bit_and_another_seed_does_not():
    def events(seed):
        fabric = Jittered(EVEN, spread=0.3, seed=seed)
        return run(sums, 8, args=(ring_all_reduce, 20), fabric=fabric).trace.events

    assert events(1) == events(1) != events(2)
    assert run(sums, 8, args=(ring_all_reduce, 20), fabric=EVEN).elapsed_s < (
        run(
            sums, 8, args=(ring_all_reduce, 20), fabric=Jittered(EVEN, 0.3, 1)
        ).elapsed_s
    )


def test_requests_overlap_with_work_and_share_their_port():
    def overlapped(comm):
        array = np.zeros(1000)
        if comm.rank:
            return comm.recv(array, 0) is array
        requests = [comm.isend(array, peer) for peer in range(1, comm.world_size)]
        comm.compute(1e-3)
        done = [request.is_completed() for request in requests]
        for request in requests:
            request.wait()
        return done

    report = run(overlapped, 4, fabric=EVEN)
    assert report.results == [[True] * 3, True, True, True]
    assert report.elapsed_s == pytest.approx(1e-3)
    without = run(one_message, 2, args=(0, 1, 1000), fabric=EVEN).elapsed_s
    ends = [e.end for e in report.trace.events if e.kind == "recv"]
    assert ends == pytest.approx([3 * without] * 3)


def test_ranks_go_on_in_the_order_of_one_heap_of_moments_and_ranks():
    draw, clock, heap = random.Random(1), Clock(), []
    for number in range(2000):
        while heap and draw.random() < 0.5:
            moment, rank = heapq.heappop(heap)
            assert (clock.next(), clock.now) == (rank, moment)
        at = clock.now + draw.choice([0, 0, 1, 2, 2.5])
        rank = number * 7919 % 2000
        clock.wake(rank, at)
        heapq.heappush(heap, (at, rank))
    assert [clock.next() for _ in heap] == [rank for _, rank in sorted(heap)]
    assert clock.next() is None


def test_objects_travel_and_a_barrier_waits_for_the_last():
    def talk(comm):
        comm.compute(comm.rank * 1e-3)
        comm.barrier()
        if comm.rank == 0:
            comm.send_object({"to": 1}, 1)
            return None
        return comm.recv_object(0) if comm.rank == 1 else None

    report = run(talk, 3, fabric=EVEN)
    assert report.results == [None, {"to": 1}, None]
    entered = [e for e in report.trace.events if e.kind == "barrier"]
    assert {e.end for e in entered} == {2e-3}


# ---- failures -------------------------------------------------------------------


def everybody_sends_first(comm):
    array = np.ones(3)
    comm.send(array, (comm.rank + 1) % comm.world_size)
    comm.recv(array, (comm.rank - 1) % comm.world_size)


@pytest.mark.parametrize("fn", [everybody_sends_first, lambda comm: comm.barrier()])
def test_a_simulated_run_that_is_over_tells_the_same_after_a_journey(fn):
    def described(ended):
        try:
            return repr(ended.report())
        except Deadlock as failure:
            return str(failure)

    ended = simulate(fn, 3, args=(), fabric=EVEN)
    assert described(pickle.loads(pickle.dumps(ended))) == described(ended)


def one_skips_the_barrier(comm):
    if comm.rank != 2:
        comm.barrier()


def one_leaves_early(comm):
    if comm.rank == 0:
        comm.recv(np.ones(3), 1)


@pytest.mark.parametrize(
    ("fn", "kind"),
    [
        (everybody_sends_first, Deadlock),
        (one_skips_the_barrier, CollectiveMismatch),
        (one_leaves_early, Deadlock),
    ],
)
def test_what_hangs_is_told_in_the_words_of_a_real_world(fn, kind):
    with pytest.raises(kind) as simulated:
        run(fn, 4, fabric=EVEN)
    with pytest.raises(kind) as real:
        run(fn, 4)
    assert str(simulated.value) == str(real.value)


def unequal(comm):
    array = np.ones(3 + comm.rank)
    one_message_of = comm.send if comm.rank == 0 else comm.recv
    one_message_of(array, 1 - comm.rank)


def test_sizes_that_differ_are_named():
    with pytest.raises(
        RankRaised, match="rank 0 sends 24 bytes of float64, rank 1 has"
    ):
        run(unequal, 2, fabric=EVEN)


def test_a_planned_death_and_a_planned_hang_strike_at_their_step():
    with pytest.raises(RankDied, match="rank 2 was killed, as planned") as killed:
        run(sums, 4, args=(ring_all_reduce, 8), fabric=EVEN, faults=Kill(2, 3))
    assert killed.value.rank == 2
    with pytest.raises(WorldTimeout, match="rank 2 hung, as planned"):
        run(sums, 4, args=(ring_all_reduce, 8), fabric=EVEN, faults=Hang(2, 3))


def test_what_a_rank_raises_is_its_own_and_ends_the_world():
    def divides(comm):
        comm.barrier()
        return 1 // (comm.rank - 1)

    with pytest.raises(RankRaised, match="rank 1 raised ZeroDivisionError") as failure:
        run(divides, 3, fabric=EVEN)
    assert isinstance(failure.value.cause, ZeroDivisionError)


def test_a_rank_that_no_wire_leads_to_is_named():
    fabric = Wires({(0, 1): LINK, (1, 0): LINK})
    run(one_message, 3, args=(0, 1, 5), fabric=fabric)
    with pytest.raises(RankRaised, match="no way from rank 1 to rank 2"):
        run(one_message, 3, args=(1, 2, 5), fabric=fabric)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Link(-1e-6, 1e9),
        lambda: Link(1e-6, 0),
        lambda: Link(1e-6, -5),
        lambda: Link(float("nan"), 1e9),
        lambda: Link("fast", 1e9),
        lambda: Nodes(0, LINK, LINK),
        lambda: Nodes(4, LINK, LINK, nics=0),
        lambda: FatTree(4, LINK, oversubscription=0.5),
        lambda: Slowed(EVEN, 0, 1, 0),
        lambda: SlowRank(EVEN, 0, -1),
        lambda: Jittered(EVEN, 0),
    ],
)
def test_what_no_fabric_can_be_made_of_is_refused(make):
    with pytest.raises(InvalidArgument):
        make()


def test_arguments_are_each_ranks_own():
    def change(comm, numbers):
        numbers.append(comm.rank)
        comm.barrier()
        return numbers

    report = run(change, 3, args=([],), fabric=EVEN)
    assert report.results == [[0], [1], [2]]


def test_ranks_that_are_over_leave_no_memory_behind():
    def hoards(comm):
        cycle = [np.ones(30_000)]
        cycle.append(cycle)
        comm.barrier()

    before = resident_bytes()
    run(hoards, 500, fabric=EVEN)
    assert resident_bytes() < before + 32 * MB  # 120 MB were in use


def test_a_message_without_content_takes_the_time_of_its_bytes():
    def sends(comm):
        message = Payload(10**12)
        if comm.rank == 0:
            comm.send(message, 1)
        else:
            comm.recv(message, 0)

    fabric = Uniform(Link(latency_s=1.0, bytes_per_s=1e12))
    report = run(sends, 2, fabric=fabric)
    assert report.elapsed_s == pytest.approx(2)
    assert report.trace.bytes_sent(0) == 10**12
