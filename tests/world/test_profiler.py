"""What PyTorch's own training does, as its profiler sees it and our lanes draw it."""

import sys
import time
from threading import Event

import pytest
import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

from distlab import Trace, World
from distlab.engines.profiler import Profile, profiled, trace_of_profiles
from distlab.show import player
from distlab.show.reading.trace_reading import Reading
from distlab.units import readable_bytes

N = 3


@pytest.fixture(scope="module")
def world():
    with World(N) as world:
        yield world


def layers():
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(256, 256) for _ in range(8)])


def steps_of_ddp(comm, bucket_mb, steps, meets=False):
    """Train; meets: a backward does not end before a bucket has been reduced."""
    model, reduced = DistributedDataParallel(layers(), bucket_cap_mb=bucket_mb), Event()

    def reduce(state, bucket):
        return allreduce_hook(None, bucket).then(done)

    def done(future):
        reduced.set()
        return future.value()[0]

    model.register_comm_hook(None, reduce)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x = torch.randn(64, 256)
    for _ in range(2):  # at the second forward DDP makes its buckets anew
        model(x).sum().backward()
    if meets:
        model.module[0].weight.register_hook(lambda _: reduced.wait(60) and None)
    with profiled(comm) as profile:
        began = time.monotonic()
        for _ in range(steps):
            loss = model(x).sum()
            reduced.clear()
            loss.backward()
            optimizer.step()
        ended = time.monotonic()
    near = 0.001
    assert all(began - near <= e.start <= ended + near for e in profile.events)
    works = [event for event in profile.events if event.kind == "work"]
    assert works and all(event.end <= ended + near for event in works)
    return profile


def of(trace, rank, label):
    return [e for e in trace.of(rank) if e.label.startswith(label)]


def test_ddp_begins_to_reduce_before_backward_ends_if_it_has_several_buckets(world):
    report = world.run(steps_of_ddp, 0.5, 3, True)
    trace = trace_of_profiles(report)
    for rank in range(N):
        backwards, reductions = (
            of(trace, rank, "backward"),
            trace.of(rank, "collective"),
        )
        assert len(reductions) == 4 * len(backwards) == 12
        assert all(
            backward.start < first.start < backward.end
            for backward, first in zip(backwards, reductions[::4], strict=True)
        )
    assert report.output == [""] * N


def test_with_one_bucket_ddp_begins_when_all_gradients_are_there(world):
    trace = trace_of_profiles(world.run(steps_of_ddp, 100, 2))
    total = sum(parameter.nbytes for parameter in layers().parameters())
    for rank in range(N):
        backwards, reductions = (
            of(trace, rank, "backward"),
            trace.of(rank, "collective"),
        )
        assert [e.label for e in reductions] == [
            f"all_reduce {readable_bytes(total)}"
        ] * 2
        for backward, reduction in zip(backwards, reductions, strict=True):
            assert reduction.start >= backward.end
        works = [e.label for e in trace.of(rank, "work")]
        assert works == ["forward", "backward", "step"] * 2


def test_all_ranks_are_on_one_clock(world):
    trace = trace_of_profiles(world.run(steps_of_ddp, 0.5, 3))
    assert trace.events[0].start == 0
    sides = [trace.of(rank, "collective") for rank in range(N)]
    assert len(sides[0]) == 12
    for same in zip(*sides, strict=True):  # nobody has the sum before all have begun
        assert max(e.start for e in same) < min(e.end for e in same)


def test_lanes_and_player_show_it(world):
    trace = trace_of_profiles(world.run(steps_of_ddp, 0.5, 1))
    states = {span.state for span in Reading(trace).spans(1.0)}
    assert states == {"working", "together"}
    size = readable_bytes(2 * (256 * 256 + 256) * 4)
    assert player(trace).alt.count(f"All ranks call all_reduce {size}") == 4


def step_of_fsdp2(comm):
    model, mesh = layers(), init_device_mesh("cpu", (comm.world_size,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    x = torch.randn(64, 256)
    with profiled(comm) as profile:
        with record_function("forward"):
            loss = model(x).sum()
        loss.backward()
    return profile


def test_fsdp2_gathers_in_forward_and_in_backward(world):
    trace = trace_of_profiles(world.run(step_of_fsdp2))
    for rank in range(N):
        forward, backward = trace.of(rank, "work")
        assert (forward.label, backward.label) == ("forward", "backward")
        gathers = of(trace, rank, "all_gather")
        before = [e for e in gathers if forward.start < e.start < forward.end]
        after = [e for e in gathers if backward.start < e.start < backward.end]
        assert len(before) == len(after) == 8 and len(gathers) == 16


def fails_and_goes_on(comm):
    try:
        with profiled(comm):
            raise ValueError("in the body")
    except ValueError as error:
        print(error, file=sys.stderr)
    with profiled(comm) as profile, record_function("again"):
        pass
    return [event.label for event in profile.events]


def test_an_error_in_the_body_leaves_stderr_open_and_the_next_profile_works(world):
    report = world.run(fails_and_goes_on)
    assert report.results == [["again"]] * N
    assert report.output == ["in the body\n"] * N


def test_no_profiles_make_an_empty_trace():
    assert trace_of_profiles([Profile(), Profile()]) == Trace(2)
