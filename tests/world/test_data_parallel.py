"""Data parallel training beside one process with the whole batch, and beside torch."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

from distlab import Deadlock, InvalidArgument, RankRaised, run
from distlab.links import LINKS
from distlab.simulated import Uniform
from distlab.train.buckets import Bucket, in_buckets
from distlab.train.data import ShardedSampler
from distlab.train.data_parallel import (
    BucketedDataParallel,
    NaiveDataParallel,
    OverlappedDataParallel,
    share_of_batch,
)
from distlab.train.models import DigitReader
from distlab.units import KiB, MiB

LADDER = [NaiveDataParallel, BucketedDataParallel, OverlappedDataParallel]
STEPS = 20
SIZES = [1, 3, 4]


class Tied(nn.Module):
    """Layers that share a weight, one that is frozen, and one that is not used."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 6)
        self.two.weight = self.one.weight
        self.frozen = nn.Linear(6, 6).requires_grad_(False)
        self.last = nn.Linear(6, 2)

    def forward(self, x):
        return self.last(self.frozen(self.two(torch.tanh(self.one(x)))))


MODELS = {"digits": lambda: DigitReader(16), "tied": Tied}


def made(name, dtype, seed=0):
    torch.manual_seed(seed)
    return MODELS[name]().to(dtype)


def batch(step, count, width, dtype):
    draw = torch.Generator().manual_seed(step)
    return torch.randn(count, width, generator=draw, dtype=dtype)


def width_of(name):
    return 64 if name == "digits" else 6


def mean_loss(output):
    return (output**2).sum(dim=1).mean()


def alone(name, dtype, counts):
    """Return the parameters after training in one process on whole batches."""
    model = made(name, dtype)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for step, count in enumerate(counts):
        optimizer.zero_grad()
        mean_loss(model(batch(step, count, width_of(name), dtype))).backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def together(comm, kind, name, dtype, counts):
    """Return the same for ranks that share every batch out, unevenly if need be."""
    model = kind(comm, made(name, dtype, seed=comm.rank))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for step, count in enumerate(counts):
        whole = batch(step, count, width_of(name), dtype)
        mine = whole[comm.rank :: comm.world_size]
        optimizer.zero_grad()
        loss = mean_loss(model(mine)) if len(mine) else 0 * model(whole[:1]).sum()
        (loss * share_of_batch(comm, len(mine))).backward()
        model.average_gradients()
        optimizer.step()
    return [p.detach() for p in model.module.parameters()]


@pytest.mark.parametrize("kind", LADDER)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", SIZES)
def test_parameters_are_those_of_one_process_with_the_whole_batch(
    worlds, kind, name, n
):
    counts = [12] * (STEPS - 2) + [7, 2]  # the last ones cannot be shared evenly
    expected = alone(name, torch.float64, counts)
    for result in worlds[n].run(together, kind, name, torch.float64, counts).results:
        for ours, theirs in zip(result, expected, strict=True):
            assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", LADDER)
def test_float32_differs_by_rounding_only(worlds, kind):
    counts = [12] * STEPS
    expected = alone("digits", torch.float32, counts)
    results = worlds[4].run(together, kind, "digits", torch.float32, counts).results
    for result in results:
        for ours, theirs in zip(result, expected, strict=True):
            assert (ours - theirs).abs().max() < 1e-5
    for first, *others in zip(*results, strict=True):
        assert all(torch.equal(first, other) for other in others)


def beside_torch(comm, steps):
    ours = OverlappedDataParallel(comm, made("digits", torch.float64))
    theirs = nn.parallel.DistributedDataParallel(made("digits", torch.float64))
    for step in range(steps):
        x = batch(step + 100 * comm.rank, 5, 64, torch.float64)
        for model in (ours, theirs):
            model.zero_grad()
            mean_loss(model(x)).backward()
        ours.average_gradients()
        pairs = zip(ours.parameters(), theirs.parameters(), strict=True)
        if not all(torch.allclose(a.grad, b.grad, atol=1e-14) for a, b in pairs):
            return step
    return "same"


def test_gradients_are_those_of_torchs_own(worlds):
    assert worlds[3].run(beside_torch, 3).results == ["same"] * 3


@pytest.mark.parametrize("limits", [(1 * KiB, 4 * KiB), (1 * MiB, 25 * MiB), (1, 1)])
def test_buckets_are_laid_out_as_torchs_are(limits):
    parameters = list(made("digits", torch.float32).parameters())
    backwards = parameters[::-1]
    buckets = dist._compute_bucket_assignment_by_size(backwards, list(limits))[0]
    place = {id(parameter): number for number, parameter in enumerate(backwards)}
    ours = [
        [place[id(parameter)] for parameter in bucket.parameters()]
        for bucket in in_buckets(parameters, *limits)
    ]
    assert ours == buckets


def counted(comm, kind, options):
    model = kind(comm, DigitReader(64), **options)
    comm.mark("step")
    mean_loss(model(torch.randn(4, 64))).backward()
    model.average_gradients()
    return sum(p.nbytes for p in model.parameters())


@pytest.mark.parametrize("kind, options, calls", [
    (NaiveDataParallel, {}, 6),
    (BucketedDataParallel, {}, 1),
    (BucketedDataParallel, {"first_bytes": 4 * KiB, "bucket_bytes": 16 * KiB}, 2),
    (OverlappedDataParallel, {"first_bytes": 4 * KiB, "bucket_bytes": 16 * KiB}, 2),
])  # fmt: skip
def test_a_step_moves_the_gradients_twice_less_a_share_in_that_many_calls(
    worlds, kind, options, calls
):
    report = worlds[4].run(counted, kind, options)
    moved = 0
    for rank in range(4):
        marks = report.trace.of(rank, "mark")
        begun = next(event for event in marks if event.label == "step")
        after = [event for event in marks if event.start > begun.start]
        sends = [e for e in report.trace.of(rank, "send") if e.step > begun.step]
        assert [e.label for e in after].count("reduce-scatter, step 1 of 3") == calls
        assert len(sends) == 6 * calls
        moved += sum(event.bytes for event in sends)
    assert moved == 2 * 3 * report.results[0]


def when(comm, kind):
    model = kind(comm, DigitReader(16), first_bytes=1, bucket_bytes=1)
    loss = mean_loss(model(torch.randn(4, 64)))
    with comm.work("backward", seconds=1.0):
        loss.backward()
    model.average_gradients()


@pytest.mark.parametrize("kind", [BucketedDataParallel, OverlappedDataParallel])
def test_communication_begins_before_backward_ends_if_it_overlaps(kind):
    trace = run(when, 2, args=(kind,), fabric=Uniform(LINKS["NVLink 4"])).trace
    for rank in range(2):
        (backward,) = trace.of(rank, "work")
        sends = [e for e in trace.of(rank, "send") if e.end > backward.start]
        overlaps = sends[0].end < backward.end
        assert overlaps == (kind is OverlappedDataParallel)


def accumulates(comm, kind):
    model = kind(comm, made("digits", torch.float64))
    x = batch(comm.rank, 6, 64, torch.float64)
    before = comm.recorder.step
    with model.no_sync():
        (mean_loss(model(x[:3])) / 2).backward()
        model.average_gradients()
    quiet = comm.recorder.step - before
    (mean_loss(model(x[3:])) / 2).backward()
    model.average_gradients()
    accumulated = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    mean_loss(model(x)).backward()
    model.average_gradients()
    pairs = zip(accumulated, model.parameters(), strict=True)
    return quiet, all(torch.allclose(a, p.grad, atol=1e-13) for a, p in pairs)


@pytest.mark.parametrize("kind", LADDER)
def test_no_sync_adds_up_without_a_message_and_then_averages_the_sum(worlds, kind):
    assert worlds[3].run(accumulates, kind).results == [(0, True)] * 3


def leaves_one_out(comm, unused):
    model = nn.ModuleDict({"used": nn.Linear(4, 4), "rest": nn.Linear(4, 4)})
    parallel = OverlappedDataParallel(comm, model, unused=unused)
    mean_loss(model["used"](torch.ones(2, 4))).backward()
    parallel.average_gradients()
    return [p.grad.abs().sum().item() for p in model["rest"].parameters()]


def test_an_unused_parameter_is_named_or_counts_as_zero():
    with pytest.raises(RankRaised, match=r"no gradient for rest\.bias, rest\.weight"):
        run(leaves_one_out, 2, args=("error",))
    assert run(leaves_one_out, 2, args=("zero",)).results == [[0.0, 0.0]] * 2


def test_backward_twice_in_one_step_is_refused_with_the_way_out():
    def twice(comm):
        model = OverlappedDataParallel(comm, nn.Linear(3, 3))
        for _ in range(2):
            mean_loss(model(torch.ones(1, 3))).backward()

    with pytest.raises(RankRaised, match=r"with no_sync\(\):"):
        run(twice, 2)


@pytest.mark.parametrize("kind", LADDER)
def test_models_that_differ_are_named_with_the_first_parameter_that_does(kind):
    def differ(comm, kind):
        kind(comm, nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2 + (comm.rank == 2))))

    with pytest.raises(RankRaised) as failure:
        run(differ, 3, args=(kind,))
    assert isinstance(failure.value.cause, InvalidArgument)
    assert "1.weight float32[2, 4], on rank 2 1.weight float32[3, 4]" in str(
        failure.value.cause
    )


def test_a_rank_with_fewer_batches_is_named_and_nobody_hangs():
    def uneven(comm):
        model = OverlappedDataParallel(comm, nn.Linear(3, 3))
        for _ in range(3 - (comm.rank == 1)):
            model.zero_grad()
            mean_loss(model(torch.ones(1, 3))).backward()
            model.average_gradients()

    with pytest.raises(Deadlock, match="rank 1 has returned"):
        run(uneven, 3)


@pytest.mark.parametrize("count, n", [(10, 4), (12, 4), (3, 5), (1797, 2)])
def test_a_sampler_gives_every_rank_as_many_and_leaves_none_out(count, n):
    samplers = [ShardedSampler(count, rank, n) for rank in range(n)]
    parts = [list(sampler) for sampler in samplers]
    assert {len(part) for part in parts} == {len(samplers[0])} == {-(-count // n)}
    assert set().union(*parts) == set(range(count))
    samplers[0].set_epoch(1)
    assert list(samplers[0]) != parts[0] or count < 4


def test_a_bucket_leaves_gradients_where_the_next_step_writes_them():
    layer = nn.Linear(3, 2)
    bucket = Bucket(list(layer.parameters()))
    layer(torch.ones(1, 3)).sum().backward()
    bucket.take_in()
    bucket.buffer().mul_(2)
    bucket.hand_out()
    assert layer.weight.grad.tolist() == [[2.0] * 3] * 2
    assert layer.weight.grad.untyped_storage().data_ptr() == bucket.buffer().data_ptr()
