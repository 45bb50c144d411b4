"""Collectives that torch's own wrappers issue are in the trace, and named in a hang."""

import _thread
import mmap
import os
import socket
import sys
import time
from types import SimpleNamespace

import psutil
import pytest
import torch
import torch.distributed as dist
from soaks import repeats
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import (
    PowerSGDState,
    powerSGD_hook,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

import distlab.train  # noqa: F401  has torch's part of it imported once, for all ranks
from distlab import CollectiveMismatch, Deadlock, WorldFailed, run


def layers(count, width=10):
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(count)))


def train(model, steps, width=10):
    for _ in range(steps):
        model(torch.ones(4, width)).square().sum().backward()


def two_buckets(comm):
    train(DistributedDataParallel(layers(3), bucket_cap_mb=0.0005), 3)


@repeats(1, 100)
@pytest.mark.timeout(1800)
def test_ddps_buckets_are_in_the_trace_with_their_bytes_and_times(count):
    for trace in [run(two_buckets, 2).trace for _ in range(count)]:
        reduced = [e for e in trace.of(0, "collective") if "all_reduce" in e.label]
        assert [e.bytes for e in reduced] == [1320, 880, 440, 880, 440]  # then rebuilt
        assert all(e.start <= e.end for e in reduced)
        assert [e.label.removeprefix("DDP's all_reduce of ") for e in reduced] == [
            "2.bias to 0.weight",
            *["2.bias to 1.weight", "0.bias to 0.weight"] * 2,
        ]


def from_a_bare_thread(comm):
    """Issue a collective with no frame of Python below it, as autograd does on GPUs."""
    total, deadline = torch.ones(1), time.monotonic() + 20
    _thread.start_new_thread(dist.group.WORLD.allreduce, ([total],))
    while total != 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    return total.tolist()


def test_a_collective_without_frames_below_it_is_seen():
    report = run(from_a_bare_thread, 2)
    assert report.results == [[2.0]] * 2
    assert [e.label for e in report.trace.of(0, "collective")] == ["all_reduce"]


class Travels:
    """A result that marks the trace when it is pickled, and then waits."""

    def __init__(self, comm, work, *kept):
        self.comm, self.work, self.kept = comm, work, kept

    def __reduce__(self):
        self.comm.mark("travels")
        return bool, (self.work.wait(),)


def gloos_thread_is_held_back(comm, file):
    """Return with Python's lock in hand since before a collective ended.

    gloo's thread waits for that lock to tell of the end.
    """
    go = mmap.mmap(os.open(file, os.O_RDWR), 1)
    if comm.rank == 1:
        while not go[0]:
            os.sched_yield()
        return dist.all_reduce(torch.ones(3))
    work = dist.all_reduce(torch.ones(3), async_op=True)
    future = work.get_future()
    sys.setswitchinterval(1000)
    go[0] = 1
    while not future.done():
        pass
    return Travels(comm, work, future, go)  # deleting one would let the lock go


def test_a_collective_that_gloo_has_not_told_of_is_in_the_trace_once(tmp_path):
    file = tmp_path / "go"
    file.write_bytes(bytes(1))
    trace = run(gloos_thread_is_held_back, 2, args=[file]).trace
    (mark,), (reduced,) = trace.of(0, "mark"), trace.of(0, "collective")
    assert reduced.start <= reduced.end <= mark.start


def nobody_waits(comm):
    dist.all_reduce(torch.ones(3_000_000), async_op=True)
    comm.barrier()
    if comm.rank == 0:
        dist.broadcast(torch.ones(3), 0, async_op=True)


def test_what_nobody_waits_for_has_an_end_if_all_entered_it():
    reduced, sent = run(nobody_waits, 2).trace.of(0, "collective")
    assert (reduced.bytes, sent.bytes) == (12_000_000, 12)
    assert reduced.end is not None and sent.end is None


def a_connection_breaks(comm):
    if comm.rank == 0:
        with pytest.raises(RuntimeError):
            dist.all_reduce(torch.ones(3), async_op=True).get_future().wait()
        return
    for each in psutil.Process().net_connections("tcp"):
        if each.status == psutil.CONN_ESTABLISHED:
            with socket.socket(fileno=os.dup(each.fd)) as connection:
                connection.shutdown(socket.SHUT_RDWR)


def test_a_collective_that_is_broken_off_has_no_end():
    (reduced,) = run(a_connection_breaks, 2).trace.of(0, "collective")
    assert reduced.end is None


def a_batch_of_messages(comm):
    """Tell what torch asks of a group whose backend groups messages, as NCCL does."""
    group, asked = dist.group.WORLD, []
    backend = SimpleNamespace(supports_coalescing=True)
    group._get_backend = lambda device: backend
    for name in ("_start_coalescing", "send", "recv", "_end_coalescing"):
        setattr(group, name, lambda *_, name=name: asked.append(name))
    number, peer = torch.zeros(1), 1 - comm.rank
    ways = dist.isend, dist.irecv
    dist.batch_isend_irecv([dist.P2POp(way, number, peer, tag=1) for way in ways])
    return asked


def test_torch_groups_a_send_and_a_receive_on_nccl():
    together = ["_start_coalescing", "send", "recv", "_end_coalescing"]
    assert run(a_batch_of_messages, 2).results == [together] * 2


def one_batch_fewer(comm):
    train(DistributedDataParallel(layers(1)), 5 - (comm.rank == 1))


def a_later_layer_first(comm):
    class Swapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = layers(3)

        def forward(self, x):
            return self.c(self.a(self.b(x)))

    model = DistributedDataParallel(Swapped(), bucket_cap_mb=0.0005)
    train(model, 5 - (comm.rank == 1))


def a_forward_skipped(comm):
    model = layers(3)
    for layer in model:
        fully_shard(layer)
    train(fully_shard(model), 3 - (comm.rank == 1))


def a_barrier_of_one(comm):
    dist.all_reduce(torch.ones(3))
    if comm.rank == 0:
        dist.barrier()
    dist.all_reduce(torch.ones(3))


def three_shapes(comm):
    while comm.rank and not comm.recorder.calls(comm.rank - 1):
        os.sched_yield()  # each comes later than the one before
    dist.all_reduce(torch.ones(2 + comm.rank))


def waits_later(comm):
    if comm.rank != 2:
        dist.all_reduce(torch.ones(4), async_op=True).wait()


def objects(comm):
    for _ in range(1 + (comm.rank > 0)):
        dist.broadcast_object_list([comm.rank], src=0)


def a_group_that_one_does_not_make(comm):
    if comm.rank:
        dist.new_group([0, 1])


def a_layer_of_a_mesh(comm):
    mesh = init_device_mesh("cpu", (3,))
    plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}
    model = parallelize_module(layers(2, 6), mesh, plan)
    for _ in range(1 + (comm.rank != 1)):
        model(torch.ones(4, 6)).sum().item()


def crossed(comm):
    a, b, c = (dist.new_group(ranks) for ranks in ([0, 1], [1, 2], [0, 2]))
    for group in ((a, c), (b, a), (c, b))[comm.rank]:
        dist.all_reduce(torch.ones(2), group=group)


def waits_in_cpp(comm):
    train(DistributedDataParallel(layers(1), static_graph=True), comm.rank != 1)


def a_hook_of_torchs(comm):
    model, state = DistributedDataParallel(layers(1, 100)), PowerSGDState(None)
    state.start_powerSGD_iter = 2
    model.register_comm_hook(state, powerSGD_hook)
    train(model, 5 - (comm.rank == 1), 100)


def monitored(comm):
    if comm.rank:
        dist.monitored_barrier()


HANGS = [
    (waits_in_cpp, "rank 1 returned and never called DDP's all_reduce(int32[2], SUM)"),
    (a_hook_of_torchs, "and never called all_reduce(float32[100], SUM), which ranks 0"),
    (monitored, "rank 0 returned and never called monitored_barrier(), which ranks"),
    (
        one_batch_fewer,
        "rank 1 returned after 4 backward passes and never called DDP's "
        "all_reduce(float32[110], SUM) of 0.bias to 0.weight, which ranks 0 and 2 "
        "wait in, in backward pass 5",
    ),
    (
        a_later_layer_first,
        "DDP's all_reduce(float32[220], SUM) of c.bias to a.weight, which ranks 0",
    ),
    (
        a_forward_skipped,
        "FSDP's all_gather_into_tensor(float32[44]) of 0, which ranks 0 and 2 wait in, "
        "in forward pass 3",
    ),
    (
        a_barrier_of_one,
        "collective 2: rank 0 called barrier(), ranks 1 and 2 called "
        "all_reduce(float32[3], SUM)",
    ),
    (
        three_shapes,
        "rank 0 called all_reduce(float32[2], SUM), rank 1 called all_reduce("
        "float32[3], SUM), rank 2 called all_reduce(float32[4], SUM)",
    ),
    (waits_later, "never called all_reduce(float32[4], SUM), which ranks 0 and 1"),
    (objects, "0 returned and never called broadcast_object_list's broadcast("),
    (
        a_group_that_one_does_not_make,
        "never called new_group([0, 1]) among ranks 0 and 1, which rank 1",
    ),
    (a_layer_of_a_mesh, "never called DTensor's all_reduce(float32[4, 6], SUM)"),
]


@pytest.mark.parametrize("hang, described", HANGS)
def test_a_hang_is_named_from_the_moment_all_wait(hang, described):
    with pytest.raises(CollectiveMismatch) as failed:
        run(hang, 3, timeout_s=30)
    assert described in str(failed.value)
    last = max(e.end or e.start for e in failed.value.trace.events)
    assert failed.value.trace.cut_s - last < 2


def test_groups_that_wait_crosswise_are_named():
    with pytest.raises(Deadlock) as failed:
        run(crossed, 3, timeout_s=30)
    among = [f"among ranks {pair} for rank" for pair in ("0 and 1", "1 and 2")]
    assert all(words in failed.value.cause for words in among)
    assert failed.value.cycle == (0, 1, 2)


def clean(comm, turns):
    """All kinds of collectives, groups and models, none of them in a hang."""
    pair = dist.new_group([0, 1])
    ddp = DistributedDataParallel(layers(2), find_unused_parameters=True)
    sharded = fully_shard(layers(1))
    for turn in range(turns):
        work = dist.all_reduce(torch.ones(2), async_op=True)
        if comm.rank < 2:
            dist.broadcast(torch.ones(1), turn % 2, group=pair)
        train(ddp if turn % 2 else sharded, 1)
        if turn % 3 == comm.rank:
            time.sleep(0.12)
        work.wait()
        dist.all_gather_object([None] * 3, turn)
        dist.all_gather([torch.empty(1) for _ in range(3)], torch.ones(1))
        comm.barrier()
    return comm.rank


@repeats(1, 100)
@pytest.mark.timeout(1800)
def test_a_clean_run_raises_no_alarm(count):
    for _ in range(count):
        assert run(clean, 3, args=[10], timeout_s=120).results == [0, 1, 2]


def raises_in_backward(comm):
    model = DistributedDataParallel(layers(1))
    if comm.rank == 1:
        model.module.register_full_backward_hook(lambda *_: 1 / 0)
    train(model, 1)


def test_what_a_hook_raises_is_told_as_the_ranks_own():
    with pytest.raises(WorldFailed, match="rank 1 raised ZeroDivisionError"):
        run(raises_in_backward, 2)
