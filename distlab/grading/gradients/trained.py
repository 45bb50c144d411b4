"""Small models for checks of training, each with something that goes wrong in practice.

    layers    one after another
    tied      a weight that is used twice, and a layer that is frozen
    types     layers of float64 and float32 in turn
    experts   a sample visits one of two, so some ranks do not use one, or use them in
              another order

Each linear layer has gates. Only what trains imports this, since it needs torch. Where
a model starts, and what its samples are, is salted, and told to ranks by the check.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn

from distlab.grading.gradients.gates import GatedLinear
from distlab.grading.gradients.layout import Row
from distlab.grading.salt import salted

__all__ = ["LIMITS", "made", "mean_loss", "microbatch", "rows_of", "with_gates"]

_WIDTH = 6
LIMITS = {
    "layers": (600, 1000),
    "tied": (200, 700),
    "types": (300, 900),
    "experts": (100, 250),
}


class _Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = GatedLinear(_WIDTH, _WIDTH), GatedLinear(_WIDTH, _WIDTH)
        self.two.weight = self.one.weight
        self.frozen = GatedLinear(_WIDTH, _WIDTH).requires_grad_(False)
        self.three, self.last = GatedLinear(_WIDTH, 9), GatedLinear(9, 2)

    def forward(self, x):
        x = torch.tanh(self.two(torch.tanh(self.one(x))))
        return self.last(torch.tanh(self.three(self.frozen(x))))


class _Types(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = pairwise([_WIDTH, 7, 8, 8, 7, 3])
        self.layers = nn.ModuleList(GatedLinear(*size) for size in sizes)

    def to(self, dtype):
        for number, layer in enumerate(self.layers):
            layer.to(dtype if number % 3 else torch.float32)
        return self

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x.to(layer.weight.dtype)))
        return x.double()


class _Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GatedLinear(_WIDTH, 5)
        self.experts = nn.ModuleList(GatedLinear(5, 5) for _ in range(2))
        self.last = GatedLinear(5, 2)

    def forward(self, x):
        hidden, kinds = torch.tanh(self.first(x)), (x[:, 0] > 0).long()
        found = torch.zeros_like(hidden)
        for kind in dict.fromkeys(kinds.tolist()):
            own = kinds == kind
            found[own] = torch.tanh(self.experts[kind](hidden[own]))
        return self.last(found)


def _layers():
    layers = [GatedLinear(*size) for size in pairwise([_WIDTH, 8, 8, 8, 8, 3])]
    return nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())))


_MODELS = {"layers": _layers, "tied": _Tied, "types": _Types, "experts": _Experts}


def made(name: str) -> nn.Module:
    """Return the model of that name, the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(salted("gradients", name).getrandbits(60))
        return _MODELS[name]().to(torch.float64)


def microbatch(step: int, rank: int, number: int, count: int) -> torch.Tensor:
    """Return the samples of one microbatch, which no other rank or step has.

    The sign of its first number sends a sample to one of two experts. They take turns,
    beginning with another one on every other rank; but in each step after the first,
    one rank's samples all go to one expert.
    """
    seed = salted("microbatch", step, rank, number).getrandbits(60)
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(count, _WIDTH, generator=draw, dtype=torch.float64)
    signs = torch.tensor([(-1.0) ** (rank + place) for place in range(count)])
    if step and rank == step - 1:
        signs = (-1.0) ** step * torch.ones(count)
    x[:, 0] = x[:, 0].abs() * signs
    return x


def mean_loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return the mean over the samples of the squares of what the model makes."""
    return ((model(x) - 1) ** 2).sum(dim=1).mean()


def with_gates(
    model: nn.Module, gate: Callable[[torch.Tensor, nn.Parameter], torch.Tensor]
) -> None:
    """Have what each layer makes with a parameter go through this gate from now on."""
    for part in model.modules():
        if isinstance(part, GatedLinear):
            part.gate = gate


def rows_of(model: nn.Module) -> list[Row]:
    """Return what the rule of buckets looks at, for each parameter, as registered."""
    return [
        Row(
            name,
            str(p.dtype).removeprefix("torch."),
            p.numel(),
            p.nbytes,
            not p.requires_grad,
        )
        for name, p in model.named_parameters()
    ]
