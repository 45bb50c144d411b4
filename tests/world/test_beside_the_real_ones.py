"""Each way of training beside the one that the world uses: same data, same losses."""

import copy
import os
import sys

import psutil
import pytest
import torch
import torch.distributed as dist
from soaks import nightly
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from distlab import EngineMissing, InvalidArgument, World, run
from distlab.engines import deepspeed
from distlab.train.buckets import in_buckets
from distlab.train.data_parallel import (
    BucketedDataParallel,
    NaiveDataParallel,
    OverlappedDataParallel,
)
from distlab.train.fsdp import FullySharded
from distlab.train.horovod import DistributedOptimizer, broadcast_parameters
from distlab.train.models import GPT, Block, DigitReader
from distlab.train.shards import all_gather_parts
from distlab.train.zero import ZeroOptimizer
from distlab.units import KiB, MiB

STEPS, SAMPLES = 5, 8
LADDER = [NaiveDataParallel, BucketedDataParallel, OverlappedDataParallel]
SMALL = {"first_bytes": 4_000, "bucket_bytes": 10_000}
MODELS = {
    "gpt": lambda: GPT(width=16, layers=2, heads=2, length=12),
    "digits": lambda: DigitReader(16),
}
UNITS = {"gpt": Block, "digits": nn.Linear}
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "adam": (torch.optim.Adam, {"lr": 1e-3}),
}
CASES = [("gpt", "adam"), ("digits", "sgd")]
cases = pytest.mark.parametrize("name, optimizer", CASES)


@pytest.fixture(scope="module", params=[pytest.param(2, marks=pytest.mark.soak), 4])
def world(request):
    """One world for many tests: its ranks load what optimizers need only once."""
    with World(request.param) as world:
        yield world


class Loss(nn.Module):
    """A model whose forward is its loss, for wrappers that look at forward only."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *batch):
        return self.model.loss(*batch)


def made(name, seed=0):
    torch.manual_seed(seed)
    return Loss(MODELS[name]()).double()


def batch(name, step, rank, world_size):
    """Return a rank's samples of a step, those of all ranks being one batch."""
    draw = torch.Generator().manual_seed(step)
    labels = torch.randint(0, 10, (SAMPLES,), generator=draw)
    pixels = torch.rand(SAMPLES, 64, generator=draw, dtype=torch.float64)
    text = torch.randint(0, 256, (SAMPLES, 13), generator=draw)
    whole = {"gpt": (text,), "digits": (pixels, labels)}[name]
    return [tensor[rank::world_size] for tensor in whole]


def optimizer_of(name, parameters):
    kind, options = OPTIMIZERS[name]
    return kind(parameters, **options)


def trained(comm, way, name, optimizer, *details):
    """Return this rank's losses, and at the end all parameters by name."""
    model = made(name)
    step, values = way(comm, model, optimizer, name, *details)
    batches = [batch(name, k, comm.rank, comm.world_size) for k in range(STEPS)]
    return [step(*each) for each in batches], values()


def named(model):
    return lambda: {name: p.detach() for name, p in model.named_parameters()}


def by_ladder(comm, model, optimizer, name, kind):
    parallel = kind(comm, model, **({} if kind is NaiveDataParallel else SMALL))
    optimizer = optimizer_of(optimizer, parallel.parameters())

    def step(*samples):
        optimizer.zero_grad()
        loss = parallel(*samples)
        loss.backward()
        parallel.average_gradients()
        optimizer.step()
        return loss.item()

    return step, named(model)


def plain(call, optimizer):
    def step(*samples):
        optimizer.zero_grad()
        loss = call(*samples)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def by_ddp(comm, model, optimizer, name):
    parallel = DistributedDataParallel(model, bucket_cap_mb=0.01)
    optimizer = optimizer_of(optimizer, parallel.parameters())
    return plain(parallel, optimizer), named(model)


def by_horovod(comm, model, optimizer, name):
    broadcast_parameters(comm, model)
    optimizer = optimizer_of(optimizer, model.parameters())
    return plain(model, DistributedOptimizer(comm, optimizer)), named(model)


def by_zero(comm, model, optimizer, name, stage):
    limits = {"first_bytes": 4_000, "group_bytes": 10_000}
    sharing = ZeroOptimizer(
        comm, model, lambda p: optimizer_of(optimizer, p), stage=stage, **limits
    )

    def step(*samples):
        loss = model(*samples)
        loss.backward()
        sharing.step()
        return loss.item()

    return step, named(model)


def by_zero_redundancy(comm, model, optimizer, name):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    parallel = DistributedDataParallel(model)
    kind, options = OPTIMIZERS[optimizer]
    optimizer = ZeroRedundancyOptimizer(parallel.parameters(), kind, **options)
    return plain(parallel, optimizer), named(model)


def by_full_sharding(comm, model, optimizer, name):
    names = {parameter: name for name, parameter in model.named_parameters()}
    sharded = FullySharded(comm, model, UNITS[name])
    optimizer = optimizer_of(optimizer, sharded.shards)

    def step(*samples):
        optimizer.zero_grad()
        loss = model(*samples)
        loss.backward()
        optimizer.step()
        return loss.item()

    def values():
        found = {}
        for unit in sharded.units:
            flat = torch.empty(unit.group.part * comm.world_size, dtype=torch.float64)
            unit.group.own(flat).copy_(unit.shard.detach())
            all_gather_parts(comm, flat)
            group = unit.group
            for p, view in zip(group.parameters, group.views(flat), strict=True):
                found[names[p]] = view.clone()
        return found

    return step, values


def by_fsdp2(comm, model, optimizer, name):
    mesh = init_device_mesh("cpu", (comm.world_size,))
    for module in list(model.modules()):
        if isinstance(module, UNITS[name]):
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = optimizer_of(optimizer, model.parameters())

    def values():
        parameters = model.named_parameters()
        return {name: p.full_tensor().detach() for name, p in parameters}

    return plain(model, optimizer), values


def by_deepspeed(comm, model, optimizer, name, stage):
    engine = deepspeed.engine(model, lambda p: optimizer_of(optimizer, p), stage)

    def step(*samples):
        loss = engine(*samples)
        engine.backward(loss)
        engine.step()
        return loss.item()

    def values():
        import deepspeed

        with deepspeed.zero.GatheredParameters(list(model.parameters())):
            return {name: p.detach().clone() for name, p in model.named_parameters()}

    return step, values if stage == 3 else named(model)


def assert_equal(results, expected, within):
    for ours, theirs in zip(results, expected, strict=True):
        (losses, values), (other_losses, other_values) = ours, theirs
        assert losses == pytest.approx(other_losses, rel=0, abs=within)
        assert len(set(losses)) == STEPS
        assert values.keys() == other_values.keys()
        for name, value in other_values.items():
            assert torch.allclose(values[name], value, rtol=0, atol=within), name


def results(world, *task):
    return world.run(trained, *task).results


@cases
def test_every_rung_of_the_ladder_trains_as_ddp_does(world, name, optimizer):
    expected = results(world, by_ddp, name, optimizer)
    for kind in LADDER:
        ours = results(world, by_ladder, name, optimizer, kind)
        assert_equal(ours, expected, 1e-12)


@cases
def test_horovods_three_calls_train_as_ddp_does(world, name, optimizer):
    expected = results(world, by_ddp, name, optimizer)
    assert_equal(results(world, by_horovod, name, optimizer), expected, 1e-12)


def one_frozen(comm):
    torch.manual_seed(comm.rank)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    broadcast_parameters(comm, model)
    model[0].requires_grad_(False)
    before = copy.deepcopy(model[0].weight)
    plain = torch.optim.SGD(model.parameters(), 0.1, weight_decay=0.5)
    optimizer = DistributedOptimizer(comm, plain)
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    return torch.equal(before, model[0].weight), model[1].weight.detach()


def test_horovods_optimizer_leaves_frozen_parameters_alone(world):
    (same, values), *others = world.run(one_frozen).results
    assert same and all(torch.equal(values, other) for _, other in others)


@cases
def test_zero_trains_as_the_zero_redundancy_optimizer_does(world, name, optimizer):
    expected = results(world, by_zero_redundancy, name, optimizer)
    for stage in (1, 2):
        ours = results(world, by_zero, name, optimizer, stage)
        assert_equal(ours, expected, 1e-12)


@cases
def test_full_sharding_trains_as_fsdp2_does(world, name, optimizer):
    expected = results(world, by_fsdp2, name, optimizer)
    assert_equal(results(world, by_full_sharding, name, optimizer), expected, 1e-12)


@pytest.mark.parametrize("name, optimizer", [CASES[0], nightly(*CASES[1])])
def test_stages_1_2_and_3_train_as_deepspeeds_do(world, name, optimizer):
    for stage in (1, 2, 3):
        theirs = results(world, by_deepspeed, name, optimizer, stage)
        way, *details = [by_full_sharding] if stage == 3 else [by_zero, stage]
        ours = results(world, way, name, optimizer, *details)
        assert_equal(ours, theirs, 1e-6)  # DeepSpeed steps in float32


class Branches(nn.Module):
    """Two ways through, of which a step uses one."""

    def __init__(self):
        super().__init__()
        self.ways = nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 5)])
        self.last = nn.Linear(5, 2)

    def forward(self, x, way):
        return (self.last(torch.tanh(self.ways[way](x))) ** 2).mean()


def with_unused(comm, ours):
    torch.manual_seed(0)
    model = Branches().double()
    if ours:
        model = OverlappedDataParallel(comm, model, unused="zero", first_bytes=1)
    else:
        model = DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    draw = torch.Generator().manual_seed(comm.rank)
    for step in range(STEPS):
        optimizer.zero_grad()
        x = torch.randn(3, 5, generator=draw, dtype=torch.float64)
        model(x, (step + comm.rank) % 2).backward()
        if ours:
            model.average_gradients()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def test_parameters_that_some_ranks_do_not_use_are_averaged_as_ddp_averages_them(world):
    mine, theirs = (world.run(with_unused, ours).results for ours in (True, False))
    for one, other in zip(mine, theirs, strict=True):
        for a, b in zip(one, other, strict=True):
            assert torch.allclose(a, b, rtol=0, atol=1e-13)


def without_sync(comm, ours):
    model = made("digits")
    model = (
        OverlappedDataParallel(comm, model) if ours else DistributedDataParallel(model)
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        pixels, labels = batch("digits", step, comm.rank, comm.world_size)
        with model.no_sync():
            model(pixels[:1], labels[:1]).backward()
        apart = [p.grad.clone() for p in model.parameters()]
        model(pixels[1:], labels[1:]).backward()
        if ours:
            model.average_gradients()
        optimizer.step()
    return apart, [p.detach() for p in model.parameters()]


def test_gradients_are_accumulated_without_sync_as_ddp_does(world):
    mine, theirs = (world.run(without_sync, ours).results for ours in (True, False))
    for (apart, values), (other_apart, other_values) in zip(mine, theirs, strict=True):
        pairs = zip(apart + values, other_apart + other_values, strict=True)
        assert all(torch.allclose(a, b, rtol=0, atol=1e-13) for a, b in pairs)
    assert not torch.equal(mine[0][0][0], mine[1][0][0])


class Chain(nn.Module):
    """Layers one after another, of these types; those of type None are frozen."""

    def __init__(self, types):
        super().__init__()
        made = [nn.Linear(40, 40, dtype=each or torch.float32) for each in types]
        self.layers = nn.ModuleList(made)
        for layer, each in zip(made, types, strict=True):
            layer.requires_grad_(each is not None)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x.to(layer.weight.dtype)))
        return x.float().sum()


CHAINS = {
    "frozen": [torch.float32, None, torch.float32, torch.float32, None, torch.float32],
    "mixed": [torch.float32, torch.bfloat16] * 3
    + [torch.bfloat16, torch.float64, torch.float32],
}


def buckets_of_ddp(comm, types, most):
    model = DistributedDataParallel(Chain(types), bucket_cap_mb=most / MiB)
    for _ in range(3):  # after the first it orders its buckets as gradients came
        model(torch.ones(2, 40)).backward()
    described = model._get_ddp_logging_data()["rebuilt_per_bucket_param_indices"]
    return [[int(number) for number in one.split()] for one in described.split(", ")]


@pytest.mark.parametrize("name", CHAINS)
def test_buckets_hold_what_those_of_ddp_hold(world, name):
    trained = [p for p in Chain(CHAINS[name]).parameters() if p.requires_grad]
    place = {parameter: number for number, parameter in enumerate(trained)}
    for most in (2 * KiB, 10 * KiB, 1 * MiB):
        mine = in_buckets(trained, most, most)
        mine = [[place[p] for p in bucket.parameters()] for bucket in mine]
        theirs = world.run(buckets_of_ddp, CHAINS[name], most).results[0]
        assert mine == theirs if name == "frozen" else sorted(mine) == sorted(theirs)


@pytest.mark.parametrize("limits", [(4 * KiB, 10 * KiB), (1 * MiB, 25 * MiB)])
def test_each_type_has_a_first_bucket_and_buckets_are_in_the_order_of_ending(limits):
    backwards = list(Chain(CHAINS["mixed"]).parameters())[::-1]
    place = {parameter: number for number, parameter in enumerate(backwards)}
    theirs = dist._compute_bucket_assignment_by_size(backwards, list(limits))[0]
    mine = in_buckets(backwards[::-1], *limits)
    mine = [[place[parameter] for parameter in bucket.parameters()] for bucket in mine]
    assert mine == sorted(theirs, key=max)


def quietly(comm):
    before, linear = dict(os.environ), nn.functional.linear
    engine = deepspeed.engine(nn.Linear(2, 2), torch.optim.SGD, 3)
    engine.backward(engine(torch.ones(1, 2)).sum())
    engine.step()
    from deepspeed.ops import __compatible_ops__ as compiled

    loaded = {"torch._inductor.lowering"} & sys.modules.keys()
    left = [*compiled, *loaded, *psutil.Process().children(), *os.listdir()]
    unchanged = dict(os.environ) == before and nn.functional.linear is linear
    return type(engine).__name__, unchanged, left


def test_deepspeed_says_nothing_compiles_nothing_and_leaves_nothing(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    report = run(quietly, 2)
    assert report.results == [("DeepSpeedEngine", True, [])] * 2
    assert report.output == ["", ""]
    assert list(tmp_path.iterdir()) == [] and "deepspeed" not in sys.modules


def test_a_missing_deepspeed_and_another_stage_are_told_before_anything_starts(
    monkeypatch,
):
    with pytest.raises(InvalidArgument, match="1, 2 or 3, and got 4"):
        deepspeed.engine(nn.Linear(2, 2), torch.optim.SGD, 4)
    monkeypatch.setattr(deepspeed, "find_spec", lambda name: None)
    with pytest.raises(EngineMissing, match=r"distlab\[deepspeed\]"):
        deepspeed.engine(nn.Linear(2, 2), torch.optim.SGD, 1)
