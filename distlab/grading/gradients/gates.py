"""Gates in a model, which backward passes one at a time; the check opens each.

    forward    x ─▶ · weight ─▶ gate ─▶ + bias ─▶ gate ─▶ tanh ─▶
    backward   x ◀─ · weight ◀─ gate ◀─ + bias ◀─ gate ◀─ tanh ◀─ slope of the loss
                                 ▲ the check's factors, for the slope that got there

Forward goes through a gate unchanged. Backward multiplies by factors that the check has
drawn, and gives out for the slope that arrives there and for no other. That slope is
made of the factors of every gate on the way from the loss. So whoever knows a gradient
has come to it from the loss, layer by layer, and the check knows when.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

__all__ = ["Gate", "GatedLinear", "drawn", "gate"]


class GatedLinear(nn.Linear):
    """A linear layer; `gate(x, parameter)` is between each of its parameters and it."""

    def __init__(self, columns: int, rows: int):
        super().__init__(columns, rows)
        self.gate = lambda x, parameter: x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x · weight + bias."""
        x = self.gate(nn.functional.linear(x, self.weight), self.weight)
        return self.gate(x + self.bias, self.bias)


class _Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factors_for):
        ctx.factors_for = factors_for
        return x.clone()

    @staticmethod
    def backward(ctx, slope):
        return slope * ctx.factors_for(slope), None


def gate(
    x: torch.Tensor, factors_for: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return x; its backward multiplies a slope by what is given for that slope."""
    return _Through.apply(x, factors_for)


def drawn(like: torch.Tensor, draw: random.Random) -> torch.Tensor:
    """Return factors, of either sign and neither large nor small."""
    numbers = [draw.choice([-1, 1]) * draw.uniform(0.5, 1.5) for _ in like.flatten()]
    return torch.tensor(numbers, dtype=like.dtype).view_as(like)


class Gate(NamedTuple):
    """What the check knows of one gate.

    name: of the parameter whose gradient backward has next. slope: of the loss there.
    """

    name: str
    slope: torch.Tensor
    factors: torch.Tensor

    def fits(self, slope: torch.Tensor, *, exact: bool) -> bool:
        """Return whether this is the slope there, of any multiple of the loss."""
        right = self.slope.flatten().double()
        times = right.dot(slope) / right.dot(right)
        error = (slope - times * right).abs().max()
        return bool(error <= (1e-6 if exact else 1e-3) * slope.abs().max())
