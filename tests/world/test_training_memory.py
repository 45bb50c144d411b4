"""Held and moved by sharded training: bytes by kind, mixed precision, accumulation."""

import gc
import weakref

import pytest
import torch
from soaks import nightly
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    checkpoint_wrapper,
)

from distlab import InvalidArgument, cost
from distlab.train.fsdp import FullySharded
from distlab.train.memory import SavedForBackward, measured
from distlab.train.models import GPT, Block
from distlab.train.offload import Offloaded
from distlab.train.optimizer_steps import MasterWeights, clip_gradients
from distlab.train.zero import ZeroOptimizer

N = 4
SIZES = [2, N]
STEPS = 2
STAGES = [1, nightly(2), 3]
LIMITS = {"first_bytes": 4_000, "group_bytes": 30_000}


@pytest.fixture
def world(worlds):
    return worlds[N]


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.1, momentum=0.9)


def adam(parameters):
    return torch.optim.Adam(parameters, 1e-3)


OPTIMIZERS = {"sgd": sgd, "adam": adam}


def masters_of_adam(parameters):
    return MasterWeights(parameters, adam)


# What an optimizer needs per number, and the bytes of parameter, gradient and state.
WAYS = {
    "sgd": (sgd, torch.float32, (4, 4, 4)),
    "adam": (adam, torch.float32, (4, 4, 8)),
    "masters": (masters_of_adam, torch.bfloat16, (2, 2, 12)),
}


def model(dtype=torch.float64):
    torch.manual_seed(0)
    return GPT(width=16, layers=3, heads=2, length=12).to(dtype)


def text(step, rank=0, n=1):
    draw = torch.Generator().manual_seed(step)
    return torch.randint(0, 256, (12, 13), generator=draw)[rank::n]


class Trained:
    """A GPT in one of the stages; `loss`, then `ready`, then `step`, whatever it is."""

    def __init__(self, comm, stage, make, gpt):
        self.gpt, self.sharded = gpt, None
        self.ready = lambda: None
        if stage == 3:
            self.sharded = FullySharded(comm, gpt, Block)
            self.optimizer = make(self.sharded.shards)
            self.shards = self.sharded.shards
        elif stage:
            self.optimizer = ZeroOptimizer(comm, gpt, make, stage=stage, **LIMITS)
            self.shards, self.ready = (
                self.optimizer.shards, self.optimizer.reduce_gradients
            )  # fmt: skip
        else:
            self.optimizer = make(list(gpt.parameters()))

    def step(self):
        self.ready()
        self.optimizer.step()
        if self.sharded is not None:
            self.optimizer.zero_grad()

    def whole(self):
        """Return this rank's part of everything, by group."""
        groups = (self.sharded or self.optimizer).groups
        return {tuple(g.names): g.shard.detach().clone() for g in groups}


def holds(comm, way, stage):
    make, dtype, _ = WAYS[way]
    trained = Trained(comm, stage, make, model(dtype))
    trained.gpt.loss(text(0)).backward()
    trained.step()
    trained.gpt.loss(text(1)).backward()  # now there is a state, and no gradient yet
    if stage == 3:
        trained.ready()
    return measured(trained.gpt, trained.optimizer, trained.sharded)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("n", [nightly(2), N])
def test_what_a_rank_holds_is_what_the_paper_says(worlds, way, stage, n):
    kinds = ("parameter_bytes", "gradient_bytes", "state_bytes")
    bytes_each = dict(zip(kinds, WAYS[way][2], strict=True))
    numbers = sum(p.numel() for p in model().parameters())
    expected = cost.zero_memory(numbers, n, stage, **bytes_each)
    for held in worlds[n].run(holds, way, stage).results:
        for kind in (*kinds, "total_bytes"):
            ours, theirs = getattr(held, kind), getattr(expected, kind)
            assert ours == pytest.approx(theirs, rel=0.02), kind


def most_blocks_at_once(comm):
    gpt = model()
    sharded = FullySharded(comm, gpt, Block)
    blocks, seen = sharded.units[:-1], []

    def look(*_):
        seen.append(sum(u.full.untyped_storage().nbytes() > 0 for u in blocks))

    for block in gpt.blocks:
        for layer in block.modules():
            layer.register_forward_hook(look)
            layer.register_full_backward_hook(look)
    gpt.loss(text(0)).backward()
    look()
    return len(blocks), max(seen), seen[-1], len(seen)


def test_no_more_than_two_blocks_exist_at_once_in_forward_and_backward(world):
    for blocks, most, at_the_end, looks in world.run(most_blocks_at_once).results:
        assert (blocks, most, at_the_end) == (3, 2, 0)
        assert looks > 30


def test_recomputed_blocks_keep_their_inputs_and_no_more():
    batch, length, width, layers = 6, 12, 16, 3
    blocks = [Block(width, 2) for _ in range(layers)]
    x = torch.randn(batch, length, width)
    inputs = layers * batch * length * width * 4
    parameters = [p for block in blocks for p in block.parameters()]
    with SavedForBackward(parameters) as kept:
        nn.Sequential(*map(checkpoint_wrapper, blocks))(x)
    assert kept.nbytes == pytest.approx(inputs, rel=0.02)
    with SavedForBackward(parameters) as kept:
        nn.Sequential(*blocks)(x)
    assert kept.nbytes > 10 * inputs


def test_what_was_kept_for_backward_goes_with_the_last_who_holds_it():
    x = torch.ones(4, requires_grad=True)
    gc.disable()
    try:
        with SavedForBackward() as kept:
            output = x.exp()  # saved by its own node of the graph
        assert kept.nbytes == output.nbytes
        there = [weakref.ref(kept), weakref.ref(output)]
        del kept, output
        assert [ref() for ref in there] == [None, None]
    finally:
        gc.enable()


def in_bfloat16(comm, stage, name, steps):
    def make(parameters):
        return MasterWeights(parameters, OPTIMIZERS[name])

    trained = Trained(comm, stage, make, model(torch.bfloat16))
    for step in range(steps):
        trained.gpt.loss(text(step, comm.rank, comm.world_size)).backward()
        trained.step()
    optimizer = trained.optimizer if stage == 3 else trained.optimizer.optimizer
    names = trained.whole().keys()
    for master, shard in zip(optimizer.masters, trained.shards, strict=True):
        assert torch.equal(master.bfloat16(), shard)
    return {n: m.detach() for n, m in zip(names, optimizer.masters, strict=True)}


@pytest.mark.parametrize(
    "name, steps, bound",
    [
        ("adam", 5, 0.05),
        nightly("adam", 20, 0.05),
        nightly("sgd", 20, 0.02),
    ],
)
def test_masters_of_a_bfloat16_model_go_where_those_of_one_process_go(
    world, name, steps, bound
):
    """What gradients rounded to 8 bits make them differ, in parts of the way gone."""
    gpt = model(torch.bfloat16)
    names = [name for name, _ in gpt.named_parameters()]
    optimizer = MasterWeights(gpt.parameters(), OPTIMIZERS[name])
    start = [master.detach().clone() for master in optimizer.masters]
    for step in range(steps):
        optimizer.zero_grad()
        gpt.loss(text(step)).backward()
        optimizer.step()
    expected = dict(zip(names, optimizer.masters, strict=True))
    gone = squared(zip(start, optimizer.masters, strict=True)) ** 0.5
    for stage in (1, 2, 3):
        results = world.run(in_bfloat16, stage, name, steps).results
        pairs = together(results, expected)
        assert squared(pairs) ** 0.5 < bound * gone


def squared(pairs):
    return sum(((a.detach() - b.detach()) ** 2).sum().item() for a, b in pairs)


def together(wholes, expected):
    """Return, for each group, all ranks' parts in one beside what is expected."""
    for names in wholes[0]:
        values = torch.cat([expected[name].detach().flatten() for name in names])
        yield torch.cat([whole[names] for whole in wholes])[: len(values)], values


def assert_same(wholes, expected):
    for ours, theirs in together(wholes, expected):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


def accumulates(comm, stage):
    trained = Trained(comm, stage, adam, model())
    sends = []
    for step in range(STEPS):
        for half in range(2):
            began = comm.recorder.step
            texts = text(step, comm.rank, comm.world_size)
            (trained.gpt.loss(texts[half::2][:1]) / 2).backward()
            if stage == 3:
                trained.ready()
            sends.append(comm.recorder.step - began)
        trained.step()
    return trained.whole(), sends


def accumulates_alone():
    gpt = model()
    optimizer = adam(gpt.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(N):
            for half in range(2):
                (gpt.loss(text(step, rank, N)[half::2][:1]) / 2 / N).backward()
        optimizer.step()
    return dict(gpt.named_parameters())


@pytest.mark.parametrize("stage", STAGES)
def test_backwards_before_a_step_add_up_and_stage_1_is_quiet_until_then(world, stage):
    results = world.run(accumulates, stage).results
    assert_same([whole for whole, _ in results], accumulates_alone())
    for _, sends in results:
        assert all(sends) if stage > 1 else not any(sends)


def offloads(comm, stage, dtype, away):
    def make(parameters):
        if away:
            return Offloaded(parameters, adam, device="cpu")
        return (
            MasterWeights(parameters, adam)
            if dtype != torch.float64
            else adam(parameters)
        )

    trained = Trained(comm, stage, make, model(dtype))
    for step in range(STEPS):
        trained.gpt.loss(text(step, comm.rank, comm.world_size)).backward()
        trained.step()
    optimizer = trained.optimizer if stage == 3 else trained.optimizer.optimizer
    moved = optimizer.moved_bytes if away else None
    return trained.whole(), moved, sum(shard.nbytes for shard in trained.shards)


@pytest.mark.parametrize("stage", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_an_offloaded_optimizer_takes_the_same_steps_and_moves_a_shard_each_way(
    world, stage, dtype
):
    here = world.run(offloads, stage, dtype, False).results
    away = world.run(offloads, stage, dtype, True).results
    for (ours, moved, shard_bytes), (theirs, _, _) in zip(away, here, strict=True):
        assert all(torch.equal(ours[names], theirs[names]) for names in theirs)
        assert moved == 2 * STEPS * shard_bytes


def clipped(comm, stage, most):
    trained = Trained(comm, stage, sgd, model())
    norms = []
    for step in range(STEPS):
        trained.gpt.loss(text(step, comm.rank, comm.world_size)).backward()
        trained.ready()
        norms.append(clip_gradients(trained.shards, most, comm))
        trained.step()
    return norms, trained.whole()


@pytest.mark.parametrize("stage", STAGES)
def test_clipping_over_shards_is_torchs_of_the_whole_model(world, stage):
    gpt, norms, most = model(), [], 0.5
    optimizer = sgd(gpt.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        gpt.loss(text(step)).backward()
        norms.append(nn.utils.clip_grad_norm_(gpt.parameters(), most).item())
        optimizer.step()
    assert min(norms) > most
    results = world.run(clipped, stage, most).results
    for ours, _ in results:
        assert ours == pytest.approx(norms, rel=1e-12)
    assert_same([whole for _, whole in results], dict(gpt.named_parameters()))


def backward_after_reducing(comm, leave_out):
    trained = Trained(comm, 1, sgd, Two())
    for _ in range(2):
        trained.gpt(numbers(0, comm.rank), True).backward()
        trained.ready()
        if leave_out:
            trained.optimizer.zero_grad()
    try:
        trained.gpt(numbers(0, comm.rank), True).backward()
        trained.optimizer.step()
    except InvalidArgument as error:
        return str(error)
    return trained.whole()


def test_a_backward_after_reducing_is_refused_unless_gradients_were_dropped(world):
    for rank, words in enumerate(world.run(backward_after_reducing, False).results):
        assert words.startswith(f"rank {rank}: a backward ran after")
    plain = Two()
    optimizer = sgd(plain.parameters())
    for rank in range(N):
        (plain(numbers(0, rank), True) / N).backward()
    optimizer.step()
    results = world.run(backward_after_reducing, True).results
    assert_same(results, dict(plain.named_parameters()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_what_is_offloaded_is_not_on_the_gpu():
    here, away = (nn.Linear(3, 3).cuda() for _ in range(2))
    away.load_state_dict(here.state_dict())
    ours, theirs = Offloaded(away.parameters(), adam), adam(here.parameters())
    for layer, optimizer in ((away, ours), (here, theirs)):
        layer(torch.ones(1, 3).cuda()).sum().backward()
        optimizer.step()
    assert torch.allclose(away.weight, here.weight, atol=1e-7)
    assert {master.device.type for master in ours.masters} == {"cpu"}


def with_blocks_recomputed(comm, stage, recompute):
    gpt = model()
    if recompute:
        gpt.blocks = nn.ModuleList(map(checkpoint_wrapper, gpt.blocks))
    trained = Trained(comm, stage, adam, gpt)
    began = comm.recorder.step
    for step in range(STEPS):
        gpt.loss(text(step, comm.rank, comm.world_size)).backward()
        trained.step()
    calls = comm.recorder.step - began
    whole = trained.whole().items()
    inside = "_checkpoint_wrapped_module."
    return calls, {tuple(n.replace(inside, "") for n in k): v for k, v in whole}


def unused_on_one_rank(comm, stage):
    trained = Trained(comm, stage, adam, Two())
    for step in range(STEPS):
        for half in range(2):
            both = comm.rank != 1 and half == 0
            (trained.gpt(numbers(step, comm.rank), both) / 2).backward()
        trained.step()
    return trained.whole()


class Two(nn.Module):
    """Two layers, of which the second is not always used."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.one = nn.Linear(3, 3).double()
        self.two = nn.Linear(3, 3).double()

    def forward(self, x, both):
        x = self.one(x)
        return (self.two(x) if both else x).pow(2).mean()


def numbers(step, rank):
    draw = torch.Generator().manual_seed(10 * step + rank)
    return torch.randn(4, 3, generator=draw, dtype=torch.float64)


@pytest.mark.parametrize("stage", STAGES)
def test_recomputed_blocks_train_as_plain_ones_do_with_as_many_messages(world, stage):
    gpt = model()
    optimizer = adam(gpt.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        gpt.loss(text(step)).backward()
        optimizer.step()
    results = world.run(with_blocks_recomputed, stage, True).results
    assert_same([whole for _, whole in results], dict(gpt.named_parameters()))
    plain = world.run(with_blocks_recomputed, stage, False).results
    assert [calls for calls, _ in results] == [calls for calls, _ in plain]


@pytest.mark.parametrize("stage", [1, 2])
def test_a_layer_that_one_rank_does_not_use_counts_as_zero_there(world, stage):
    plain = Two()
    optimizer = adam(plain.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(N):
            for half in range(2):
                both = rank != 1 and half == 0
                (plain(numbers(step, rank), both) / 2 / N).backward()
        optimizer.step()
    results = world.run(unused_on_one_rank, stage).results
    assert_same(results, dict(plain.named_parameters()))


def refusals(comm):
    torch.manual_seed(0)
    tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    tied[1].weight = tied[0].weight
    mixed = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3).double())
    said = []
    for module, unit in ((tied, nn.Linear), (mixed, nn.Sequential)):
        with pytest.raises(InvalidArgument) as refused:
            FullySharded(comm, module, unit)
        said.append(str(refused.value))
    return said


def test_a_parameter_of_two_units_or_of_another_type_is_refused_by_name(world):
    for shared, mixed in world.run(refusals).results:
        assert shared.startswith("two units share 0.weight")
        assert mixed.startswith("0.weight is torch.float32 and 1.weight is not")
