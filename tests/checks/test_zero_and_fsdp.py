"""What the proof of exercise 12 does not show: its oracle, and unusual answers."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from distlab.checks import zero_and_fsdp as checks
from distlab.checks.kit.verdict import judge
from distlab.collectives import AVERAGE, ring_all_gather, ring_reduce_scatter
from distlab.train.live_memory import LiveTensors


def own_part(comm, flat):
    n = comm.world_size
    return torch.cat([flat, flat.new_zeros(-len(flat) % n)]).view(n, -1)[comm.rank]


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, comm, length):
        ctx.comm = comm
        return torch.cat(ring_all_gather(comm, part))[:length]

    @staticmethod
    def backward(ctx, gradient):
        n = ctx.comm.world_size
        padded = torch.cat([gradient, gradient.new_zeros(-len(gradient) % n)])
        mean = ring_reduce_scatter(ctx.comm, padded, op=AVERAGE).clone()
        return mean, None, None


class Checkpointed:
    def __init__(self, comm, layers, flats, make_optimizer):
        self.comm, self.layers, self.lengths = comm, layers, list(map(len, flats))
        self.parts = [own_part(comm, f).clone().requires_grad_() for f in flats]
        self.optimizer = make_optimizer(self.parts)

    def forward(self, x):
        for layer, part, length in zip(
            self.layers, self.parts, self.lengths, strict=True
        ):
            x = checkpoint(self.at, layer, part, length, x, use_reentrant=False)
        self.output = x
        return x.detach()

    def at(self, layer, part, length, x):
        return layer(Gathered.apply(part, self.comm, length), x)

    def backward(self, gradient):
        torch.autograd.backward(self.output, gradient)
        self.output = None

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


class KeepsArrays(Checkpointed):
    def at(self, layer, part, length, x):
        full = Gathered.apply(part, self.comm, length)
        self.comm.kept = getattr(self.comm, "kept", ()), full.detach().numpy().copy()
        return layer(full, x)


def test_checkpointed_layers_pass_and_arrays_that_are_kept_are_found():
    assert judge(checks.freed_layers, Checkpointed, (2, 33, 1)).outcome == "pass"
    found = judge(checks.freed_layers, KeepsArrays, (2, 33, 1))
    assert "after forward, on rank 0: 8 lists, arrays or bytes" in found.found
    assert "not by tensors" in found.hints[0]


@pytest.mark.parametrize("kind, theirs", [
    ("momentum", lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9)),
    ("Adam", lambda ps: torch.optim.Adam(ps, 0.05)),
])  # fmt: skip
def test_the_oracle_trains_as_torch_does_with_the_data_of_all(kind, theirs):
    (*starts, one, other), width = checks._fresh(4), 3
    flats = [flat.requires_grad_() for flat in checks._starts(width, starts)]
    gradients, optimizer = checks.partial(checks._stack_gradients, width), theirs(flats)
    history = checks.trained(
        [flat.detach() for flat in flats], gradients, kind, [one, other], 2, 1
    )
    for step in range(2):
        data = [checks._seed(seed, step, 0) for seed in (one, other)]
        x = torch.cat([checks._drawn(seed, checks.BATCH, width) for seed in data])
        goal = torch.cat([checks._drawn(s + 1, checks.BATCH, width) for s in data])
        for i, flat in enumerate(flats):
            x = checks._layer(i, width, flat, x)
        optimizer.zero_grad()
        ((x - goal) ** 2 / 2).sum(1).mean().backward()
        optimizer.step()
        torch.testing.assert_close(history[step + 1], torch.cat(flats).detach())


def test_live_tensors_counts_storages_whoever_holds_them():
    with LiveTensors() as live:
        kept = torch.ones(100, dtype=torch.float64)
        part = torch.zeros(50, dtype=torch.float64)[:1]
        assert sum(live.sizes().values()) == 1200  # all that a view is a view of
        y = (kept.clone().requires_grad_() ** 3).sum()
        del kept
        assert sum(live.sizes().values()) == 1200 + 8  # autograd keeps the copy
        del y
        part.untyped_storage().resize_(0)
        assert not live.sizes()
