"""Each way of training beside the one that the world uses: same data, same losses."""

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from distlab import World
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

STEPS, SAMPLES = 6, 8
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
everything = pytest.mark.parametrize("name", MODELS)
both = pytest.mark.parametrize("optimizer", OPTIMIZERS)


@pytest.fixture(scope="module", params=[2, 4])
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
    paths = {id(module): path for path, module in model.named_modules()}
    sharded = FullySharded(comm, model, UNITS[name])
    optimizer = optimizer_of(optimizer, sharded.shards)

    def step(*samples):
        optimizer.zero_grad()
        loss = model(*samples)
        loss.backward()
        sharded.finish_backward()
        optimizer.step()
        return loss.item()

    def values():
        found = {}
        for unit in sharded.units:
            flat = torch.empty(unit.group.part * comm.world_size, dtype=torch.float64)
            unit.group.own(flat).copy_(unit.shard.detach())
            all_gather_parts(comm, flat)
            views = unit.group.views(flat)
            for (owner, parameter), view in zip(unit.homes, views, strict=True):
                found[f"{paths[id(owner)]}.{parameter}"] = view.clone()
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


@everything
@both
def test_every_rung_of_the_ladder_trains_as_ddp_does(world, name, optimizer):
    expected = results(world, by_ddp, name, optimizer)
    for kind in LADDER:
        ours = results(world, by_ladder, name, optimizer, kind)
        assert_equal(ours, expected, 1e-12)


@both
def test_horovods_three_calls_train_as_ddp_does(world, optimizer):
    expected = results(world, by_ddp, "gpt", optimizer)
    assert_equal(results(world, by_horovod, "gpt", optimizer), expected, 1e-12)


@everything
@both
def test_zero_trains_as_the_zero_redundancy_optimizer_does(world, name, optimizer):
    expected = results(world, by_zero_redundancy, name, optimizer)
    for stage in (1, 2):
        ours = results(world, by_zero, name, optimizer, stage)
        assert_equal(ours, expected, 1e-12)


@everything
@both
def test_full_sharding_trains_as_fsdp2_does(world, name, optimizer):
    expected = results(world, by_fsdp2, name, optimizer)
    assert_equal(results(world, by_full_sharding, name, optimizer), expected, 1e-12)


@both
def test_stages_1_2_and_3_train_as_deepspeeds_do(world, optimizer):
    for stage in (1, 2, 3):
        theirs = results(world, by_deepspeed, "gpt", optimizer, stage)
        way, *details = [by_full_sharding] if stage == 3 else [by_zero, stage]
        ours = results(world, way, "gpt", optimizer, *details)
        assert_equal(ours, theirs, 1e-6)  # DeepSpeed steps in float32
