"""What the proof of exercise 12 does not show: its oracle, and unusual answers."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from distlab.checks import zero_and_fsdp as checks
from distlab.collectives import AVERAGE, ring_all_gather, ring_reduce_scatter


def padded(comm, flat):
    return torch.cat([flat, flat.new_zeros(-len(flat) % comm.world_size)])


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, comm, length):
        ctx.comm = comm
        return torch.cat(ring_all_gather(comm, part))[:length]

    @staticmethod
    def backward(ctx, gradient):
        gradient = padded(ctx.comm, gradient)
        return ring_reduce_scatter(ctx.comm, gradient, op=AVERAGE).clone(), None, None


class Checkpointed:
    def __init__(self, comm, layers, flats, make_optimizer):
        self.comm = comm
        chunks = [padded(comm, flat).chunk(comm.world_size) for flat in flats]
        parts = [chunk[comm.rank].clone().requires_grad_() for chunk in chunks]
        self.each = list(zip(layers, parts, map(len, flats), strict=True))
        self.optimizer = make_optimizer(parts)

    def forward(self, x):
        for layer, part, length in self.each:
            x = checkpoint(self.at, layer, part, length, x, use_reentrant=False)
        self.output = x
        return x.detach()

    def at(self, layer, part, length, x):
        return layer(Gathered.apply(part, self.comm, length), x)

    def backward(self, gradient):
        self.__dict__.pop("output").backward(gradient)

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


def test_checkpointed_layers_pass():
    checks.sharded_layers(Checkpointed, 2, 33, "momentum", 1)  # raises Wrong if not


def test_the_oracle_trains_as_one_process_does_with_the_data_of_all():
    start, seeds = checks._starts(3, checks._fresh(2)), checks._fresh(2)
    flats = [flat.clone().requires_grad_() for flat in start]
    optimizer = torch.optim.SGD(flats, 0.1, momentum=0.9)
    gradients = checks.partial(checks._stack_gradients, 3)
    history = checks.trained(start, gradients, "momentum", seeds, 2)
    for step in range(2):
        data = [seed + 100 * step + i for i in range(2) for seed in seeds]
        x, goal = torch.cat([checks._drawn(seed, 2, 3) for seed in data]).chunk(2)
        for flat in flats:
            x = checks._layer(flat, x)
        optimizer.zero_grad()
        ((x - goal) ** 2 / 2).sum(1).mean().backward()
        optimizer.step()
        assert history[step + 1] == pytest.approx(torch.cat(flats).tolist())
