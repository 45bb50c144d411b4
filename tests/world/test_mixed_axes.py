"""Several axes at once train the model of one process: 3-D, and hybrid sharding."""

import math

import pytest
import torch
from torch import nn

from distlab import Mesh, run
from distlab.collectives import AVERAGE, ring_all_reduce
from distlab.train.fsdp import FullySharded
from distlab.train.models import GPT, Block
from distlab.train.pipeline import PipelinedModel, one_f_one_b
from distlab.train.shared_parameters import clip_gradients, sharded_parameters
from distlab.train.vocab_parallel import ParallelGPT, vocab_parallel_cross_entropy

STEPS, SAMPLES, MOST = 4, 8, 0.5


def made():
    torch.manual_seed(0)
    gpt = GPT(width=16, layers=2, heads=2, length=8).double()
    return gpt, torch.randint(0, 256, (STEPS, SAMPLES, 9))


def alone():
    gpt, batches = made()
    adam, seen = torch.optim.Adam(gpt.parameters(), lr=0.01), []
    for text in batches:
        adam.zero_grad()
        loss = gpt.loss(text)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(gpt.parameters(), MOST)
        adam.step()
        seen.append((loss.item(), norm.item()))
    return seen


class Stage(nn.Module):
    """What one stage of a pipeline has of a tensor-parallel GPT."""

    def __init__(self, gpt, pp):
        super().__init__()
        blocks = len(gpt.blocks) // pp.world_size
        self.blocks = gpt.blocks[pp.rank * blocks :][:blocks]
        self.first = pp.rank == 0 and nn.ModuleList(
            [gpt.token_embedding, gpt.position_embedding]
        )
        self.last = pp.rank == pp.world_size - 1 and nn.Sequential(
            gpt.last_norm, gpt.head
        )

    def forward(self, x):
        if self.first:
            bytes_, places = self.first
            x = bytes_(x) + places(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.last(x) if self.last else x


def three_axes(comm, sizes):
    """Train on pipeline, data and tensor axes; return losses and norms."""
    mesh = Mesh(comm, **sizes)
    gpt, batches = made()
    stage = Stage(ParallelGPT(mesh.tp, gpt), mesh.pp)

    def loss_of(logits, targets):
        return vocab_parallel_cross_entropy(mesh.tp, logits, targets, vocabulary=256)

    schedule = one_f_one_b(mesh.pp.world_size, 2)
    pipe = PipelinedModel(mesh.pp, [stage], schedule, loss_of)
    parameters, sharded = list(stage.parameters()), sharded_parameters(stage)
    adam, seen = torch.optim.Adam(parameters, lr=0.01), []
    for text in batches:
        adam.zero_grad()
        mine = text.chunk(mesh.dp.world_size)[mesh.dp.rank]
        losses = pipe.step(mine[:, :-1], mine[:, 1:])
        for parameter in parameters:
            ring_all_reduce(mesh.dp, parameter.grad, op=AVERAGE)
        norm = clip_gradients(parameters, MOST, mesh.tp, mesh.pp, sharded=sharded)
        adam.step()
        loss = losses.double().sum()[None] / 2 / mesh.dp.world_size  # of none: 0
        ring_all_reduce(mesh["pp", "dp"], loss)
        seen.append((loss.item(), norm))
    return seen


@pytest.mark.parametrize(
    "sizes",
    [
        {"pp": 2, "dp": 2, "tp": 2},
        {"pp": 1, "dp": 4, "tp": 2},
        {"pp": 2, "dp": 1, "tp": 2},
    ],
)
def test_data_tensor_and_pipeline_axes_train_as_one_process_does(sizes):
    report = run(three_axes, math.prod(sizes.values()), args=(sizes,))
    for seen in report.results:
        assert torch.tensor(seen).allclose(torch.tensor(alone()), rtol=1e-5)


def test_hybrid_sharding_trains_as_sharding_over_all_does():
    def train(comm, hybrid):
        gpt, batches = made()
        shards, replicas = comm, None
        if hybrid:
            mesh = Mesh(comm, replicate=2, shard=2)
            shards, replicas = mesh.shard, mesh.replicate
        sharded = FullySharded(shards, gpt, Block, replicas=replicas)
        adam, losses = torch.optim.Adam(sharded.shards, lr=0.01), []
        for number, text in enumerate(batches):
            loss = gpt.loss(text[comm.rank :: comm.world_size])
            loss.backward()
            losses.append(loss.item())
            if number % 2:  # the two backwards before a step add up
                adam.step()
                adam.zero_grad()
        return losses

    hybrid, whole = (run(train, 4, args=(each,)) for each in (True, False))
    assert torch.tensor(hybrid.results).allclose(torch.tensor(whole.results), rtol=1e-9)
    along = hybrid.trace.among("replicate")
    assert 0 < along.bytes_sent(0) < hybrid.trace.among("shard").bytes_sent(0)
