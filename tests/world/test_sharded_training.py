"""ZeRO and fully sharded training: values, bytes moved, and what exists when."""

import pytest
import torch
from torch import nn

from distlab import InvalidArgument, RankRaised, run
from distlab.train.fsdp import FullySharded
from distlab.train.models import GPT, Block
from distlab.train.shards import all_gather_parts
from distlab.train.zero import ZeroOptimizer

STEPS = 4
SIZES = [1, 3, 4]
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, 1e-3),
}


def model(seed=0):
    torch.manual_seed(seed)
    return GPT(width=16, layers=2, heads=2, length=12).double()


def texts(step):
    draw = torch.Generator().manual_seed(step)
    return torch.randint(0, 256, (12, 13), generator=draw)


def alone(name):
    gpt = model()
    optimizer = OPTIMIZERS[name](gpt.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        gpt.loss(texts(step)).backward()
        optimizer.step()
    return {name: p.detach() for name, p in gpt.named_parameters()}


def in_stages(comm, name, stage):
    gpt = model(seed=comm.rank)
    limits = {"first_bytes": 4_000, "group_bytes": 10_000}
    optimizer = ZeroOptimizer(comm, gpt, OPTIMIZERS[name], stage=stage, **limits)
    for step in range(STEPS):
        gpt.loss(texts(step)[comm.rank :: comm.world_size]).backward()
        optimizer.step()
    return {name: p.detach() for name, p in gpt.named_parameters()}


def fully(comm, name, prefetch):
    gpt = model(seed=comm.rank)
    sharded = FullySharded(comm, gpt, Block, prefetch=prefetch)
    optimizer = OPTIMIZERS[name](sharded.shards)
    for step in range(STEPS):
        gpt.loss(texts(step)[comm.rank :: comm.world_size]).backward()
        optimizer.step()
        optimizer.zero_grad()
    return whole(comm, sharded)


def whole(comm, sharded):
    """Return every parameter, gathered."""
    found = {}
    for unit in sharded.units:
        flat = torch.empty(unit.group.part * comm.world_size, dtype=torch.float64)
        unit.group.own(flat).copy_(unit.shard.detach())
        all_gather_parts(comm, flat)
        for name, view in zip(unit.group.names, unit.group.views(flat), strict=True):
            found[name] = view.clone()
    return found


def same(results, expected):
    for result in results:
        assert result.keys() == expected.keys()
        for name, values in expected.items():
            assert torch.allclose(result[name], values, rtol=0, atol=1e-12), name


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_zero_trains_as_one_process_does(worlds, name, stage, n):
    same(worlds[n].run(in_stages, name, stage).results, alone(name))


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("prefetch", [True, False])
@pytest.mark.parametrize("n", SIZES)
def test_fully_sharded_training_is_that_of_one_process(worlds, name, prefetch, n):
    same(worlds[n].run(fully, name, prefetch).results, alone(name))


def moved(comm, stage):
    gpt = model()
    if stage == 3:
        sharded = FullySharded(comm, gpt, Block)
        optimizer = torch.optim.SGD(sharded.shards, 0.1)
        padded = sum(u.group.part for u in sharded.units) * comm.world_size * 8
    else:
        optimizer = ZeroOptimizer(comm, gpt, OPTIMIZERS["sgd"], stage=stage)
        padded = sum(g.full.nbytes for g in optimizer.groups)
    comm.barrier()
    first = comm.recorder.step
    gpt.loss(texts(0)[comm.rank :: comm.world_size]).backward()
    optimizer.step()
    return first, padded


@pytest.mark.parametrize("stage, times", [(1, 2), (2, 2), (3, 3)])
def test_a_step_moves_two_two_and_three_times_the_parameters_less_a_share(
    worlds, stage, times
):
    n = 4
    report = worlds[n].run(moved, stage)
    for rank, (first, padded) in enumerate(report.results):
        sends = [e for e in report.trace.of(rank, "send") if e.step > first]
        assert sum(e.bytes for e in sends) == times * (n - 1) / n * padded


def held(comm):
    gpt = model()
    sharded = FullySharded(comm, gpt, Block, prefetch=False)
    first, second = sharded.units[:2]
    seen = []

    def look(*_):
        seen.append([u.full.untyped_storage().nbytes() > 0 for u in sharded.units])

    first.module.network.register_forward_hook(look)
    second.module.network.register_forward_hook(look)
    loss = gpt.loss(texts(0))
    look()
    loss.backward()
    look()
    grads = [p.grad is None for p in gpt.parameters()]
    state = sum(u.shard.nbytes for u in sharded.units)
    return seen, grads, state, sum(p.nbytes for p in model().parameters())


def test_parameters_exist_only_while_their_unit_is_at_work(worlds):
    n = 4
    for seen, grads, state, all_bytes in worlds[n].run(held).results:
        assert seen == [
            [True, False, True],  # the embedding's unit is the whole model's
            [False, True, True],
            [False, False, False],
            [False, False, False],
        ]
        assert not grads  # the model itself has no parameters any more
        assert all_bytes / n <= state <= all_bytes / n + 3 * 8


def test_stage_2_keeps_no_gradient_but_this_ranks_part(worlds):
    def kept(comm):
        gpt = model()
        optimizer = ZeroOptimizer(comm, gpt, OPTIMIZERS["sgd"], stage=2, first_bytes=1)
        gpt.loss(texts(0)).backward()
        optimizer._settle()
        whole = [p.grad is not None for p in gpt.parameters()]
        return any(whole), [g.shard.grad.numel() - g.part for g in optimizer.groups]

    for whole, parts in worlds[3].run(kept).results:
        assert not whole and set(parts) == {0}


def test_models_that_differ_are_refused_before_anything_is_shared():
    def differ(comm):
        FullySharded(comm, nn.Linear(3, 3 + comm.rank), nn.Linear)

    with pytest.raises(RankRaised) as failure:
        run(differ, 2)
    assert isinstance(failure.value.cause, InvalidArgument)
    assert "weight float32[3, 3], on rank 1 weight float32[4, 3]" in str(
        failure.value.cause
    )


class Remembering(nn.Module):
    """A recurrent layer, which returns a tuple of tensors, in a model around it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.memory, self.head = nn.LSTM(5, 7, batch_first=True), nn.Linear(7, 1)

    def forward(self, x):
        outputs, (last, _) = self.memory(x)
        return self.head(outputs).mean() + last.pow(2).mean()


def remembering(comm, sharded):
    model = Remembering().double()
    parameters = model.parameters()
    if sharded:
        parameters = FullySharded(comm, model, nn.LSTM).shards
    optimizer = torch.optim.SGD(parameters, 0.5)
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(12, 4, 5, generator=draw, dtype=torch.float64)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(x[comm.rank :: comm.world_size]).backward()
        optimizer.step()
        losses.append(model(x).item())
    return losses


def test_a_unit_may_return_several_tensors(worlds):
    expected = worlds[1].run(remembering, False).results[0]
    assert expected[0] != expected[-1]
    for losses in worlds[3].run(remembering, True).results:
        assert losses == pytest.approx(expected, rel=1e-12)
