"""On the virtual clock messages overlap with work, and share their way fairly."""

import random

import numpy as np
import pytest
import torch

from distlab import Deadlock, RankRaised, run
from distlab.collectives import ring_all_reduce
from distlab.links import Link
from distlab.simulated import Nodes, Uniform
from distlab.train.data_parallel import BucketedDataParallel, OverlappedDataParallel
from distlab.units import GB

LINK = Link(latency_s=1e-6, bytes_per_s=1 * GB)
EVEN = Uniform(LINK)
SIZE = 1000  # of an array of float64; 8 µs at 1 GB/s
S = 8 * SIZE / LINK.bytes_per_s


def ends_of(report, kind="recv"):
    """Return when each message ended, in µs: (sender, receiver) -> end."""
    events = [e for e in report.trace.events if e.kind == kind]
    return {(e.peer, e.rank): round(e.end * 1e6, 6) for e in events}


def all_at_once(comm, messages, delays):
    """Begin each of the messages (sender, receiver, seconds later) at its time."""
    arrays, requests = [], []
    for (src, dst), delay in zip(messages, delays, strict=True):
        if comm.rank in (src, dst):
            comm.compute(delay)
            arrays.append(np.zeros(SIZE))
            begin = comm.isend if comm.rank == src else comm.irecv
            requests.append(begin(arrays[-1], dst if comm.rank == src else src))
    for request in requests:
        request.wait()


@pytest.mark.parametrize(
    ("messages", "delays", "expected"),
    [
        # Two through one port: each at half the speed, latency included.
        ([(0, 1), (0, 2)], [0, 0], [18, 18]),
        # Max-min: three share rank 2's port in, and 0 -> 1 has what 0 -> 2 leaves free.
        ([(0, 1), (0, 2), (3, 2), (4, 2)], [0] * 4, [13.5, 27, 27, 27]),
        # The second begins when the first has 3 µs left, and they share from then on.
        ([(0, 1), (2, 1)], [0, 6e-6], [12, 18]),
        # Both directions of a link are apart.
        ([(0, 1), (1, 0)], [0, 0], [9, 9]),
    ],
)
def test_messages_that_meet_share_their_ports_fairly(messages, delays, expected):
    report = run(all_at_once, 5, args=(messages, delays), fabric=EVEN)
    found = ends_of(report)
    assert [found[m] for m in messages] == pytest.approx(expected, rel=1e-9)


def test_a_rank_uses_its_link_inside_and_its_nic_at_once():
    fabric = Nodes(2, inside=LINK, outside=LINK)
    report = run(all_at_once, 4, args=([(0, 1), (0, 2)], [0, 0]), fabric=fabric)
    assert set(ends_of(report).values()) == {9}


def test_gpus_that_share_a_nic_share_its_bytes_and_not_its_latency():
    messages = [(rank, rank + 4) for rank in range(4)]
    for nics, seconds in ((None, LINK.latency_s + S), (2, LINK.latency_s + 2 * S)):
        fabric = Nodes(4, inside=LINK, outside=LINK, nics=nics)
        report = run(all_at_once, 8, args=(messages, [0] * 4), fabric=fabric)
        assert report.elapsed_s == pytest.approx(seconds, rel=1e-9)


def overlapped(comm, ready_s):
    """Reduce a bucket after each span of backward, while the next goes on."""
    started = []
    for seconds in ready_s:
        with comm.work("backward", seconds=seconds):
            bucket = np.full(SIZE, comm.rank + 1.0)
        started.append((bucket, comm.start(ring_all_reduce, bucket)))
    for _, each in started:
        each.wait()
    return [bucket[0] for bucket, _ in started]


@pytest.mark.parametrize("n", [2, 4, 8])
def test_overlapped_data_parallel_has_its_closed_form(n):
    ready_s = [1e-5, 1e-5, 3e-3]
    report = run(overlapped, n, args=(ready_s,), fabric=EVEN)
    each, now, end, expected = 2 * (n - 1) * (LINK.latency_s + S / n), 0, 0, []
    for seconds in ready_s:  # bucket i ends at max(ready i, end of i - 1) + its ring
        now += seconds
        end = max(now, end) + each
        expected.append(end)
    received = sorted(e.end for e in report.trace.of(0) if e.kind == "recv")
    assert received[2 * n - 3 :: 2 * n - 2] == pytest.approx(expected, rel=1e-9)
    assert report.elapsed_s == pytest.approx(expected[-1], rel=1e-9)
    assert report.results == [[n * (n + 1) / 2] * 3] * n


@pytest.mark.parametrize("kind", [BucketedDataParallel, OverlappedDataParallel])
def test_a_model_trains_on_the_virtual_clock_as_its_buckets_say(kind):
    def step(comm):
        def works(*about):
            with comm.work("backward", seconds=5e-6):
                pass

        layers = [torch.nn.Linear(40, 40, bias=False) for _ in range(3)]
        model = kind(comm, torch.nn.Sequential(*layers), first_bytes=1, bucket_bytes=1)
        for layer in layers:
            layer.register_full_backward_pre_hook(works)

        comm.barrier()
        comm.mark("step")
        model(torch.full((1, 40), comm.rank + 1.0, requires_grad=True)).sum().backward()
        model.average_gradients()
        return layers[-1].weight.grad.sum().item()

    report, now, end = run(step, 4, fabric=EVEN), 0, 0
    for _ in range(3):
        now += 5e-6
        ready = now if kind is OverlappedDataParallel else 15e-6
        end = max(ready, end) + 6 * LINK.seconds(4 * 40 * 40 / 4)
    assert report.trace.since("step").duration_s() == pytest.approx(end, rel=1e-9)
    assert len(set(report.results)) == 1


def test_work_takes_its_seconds_on_real_ranks_too():
    def sleeps(comm):
        with comm.work("forward", seconds=0.05):
            pass

    (event,) = [e for e in run(sleeps, 1).trace.events if e.kind == "work"]
    assert event.end - event.start >= 0.05 and event.label == "forward"


def test_asking_whether_a_request_is_over_lets_time_pass():
    def asks(comm, pause_s):
        array, asked = np.zeros(SIZE), 0
        if comm.rank == 0:
            comm.compute(1e-3)
            comm.send(array, 1)
            return None
        request = comm.irecv(array, 0)
        while not request.is_completed():
            asked += 1
            comm.compute(pause_s)
        return asked

    assert run(asks, 2, args=(1e-5,), fabric=EVEN).results == [None, 101]
    assert run(asks, 2, args=(0,), fabric=EVEN).results[1] < 5


def waits_beside(comm):
    if comm.rank:
        comm.start(lambda comm: comm.recv(np.zeros(3), 0)).wait()


def asks_for_ever(comm):
    if comm.rank:
        request = comm.irecv(np.zeros(3), 0)
        while not request.is_completed():
            pass


@pytest.mark.parametrize("fn", [waits_beside, asks_for_ever])
def test_who_waits_for_a_message_that_never_comes_is_in_a_deadlock(fn):
    with pytest.raises(Deadlock, match="rank 1 waits in recv from rank 0"):
        run(fn, 2, fabric=EVEN)


def test_what_a_started_collective_raises_is_the_ranks():
    def fails(comm):
        comm.start(lambda comm: 1 // 0)

    with pytest.raises(RankRaised, match="ZeroDivisionError"):
        run(fails, 2, fabric=EVEN)


def test_grad_mode_and_random_state_are_each_ranks_own():
    def draws(comm):
        torch.manual_seed(comm.rank), np.random.seed(comm.rank), random.seed(comm.rank)
        found = []
        with torch.set_grad_enabled(comm.rank % 2 == 0):
            for _ in range(2):
                comm.barrier()
                drawn = torch.rand(1).item(), np.random.rand(), random.random()
                found.append((*drawn, torch.is_grad_enabled()))
        return found

    before = torch.get_rng_state(), random.getstate()
    together = run(draws, 4, fabric=EVEN).results
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate() and torch.is_grad_enabled()
    for rank in range(4):
        torch.manual_seed(rank), np.random.seed(rank), random.seed(rank)
        for *drawn, mode in together[rank]:
            alone = [torch.rand(1).item(), np.random.rand(), random.random()]
            assert drawn == alone and mode is (rank % 2 == 0)
