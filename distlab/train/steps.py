"""What surrounds a step: one norm for all gradients, learning rates, master weights."""

from collections.abc import Callable, Iterable

import torch
from torch import nn

__all__ = ["MasterWeights", "clip_gradients", "scaled_rate"]


def clip_gradients(parameters: Iterable[nn.Parameter], most: float) -> float:
    """Shrink all gradients together so that their norm is `most` at most; return it.

    After averaging all ranks have the same gradients and so find the same norm. Before
    it each would shrink by its own.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms = [torch.linalg.vector_norm(gradient.float()) for gradient in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms)).item() if norms else 0.0
    if norm > most:
        for gradient in gradients:
            gradient *= most / norm
    return norm


def scaled_rate(rate: float, times: float, step: int, warmup: int) -> float:
    """Return the learning rate of a step: `times` as much as `rate`, after a warm-up.

    With a batch `times` as large a step stands for as many of before, so it may go as
    far. In the first `warmup` steps the rate rises from `rate` to that in a line.

    Source: Goyal et al., "Accurate, large minibatch SGD" (2017), section 2.
    """
    part = min(1.0, step / warmup) if warmup else 1.0
    return rate * (1 + (times - 1) * part)


class MasterWeights:
    """Train a bfloat16 model by an optimizer on float32 copies of its parameters.

    A bfloat16 has 8 bits of precision: adding a step smaller than 1/256 of a weight
    changes nothing. So steps are added up in float32, and the model gets the rounding.

    make_optimizer: makes an optimizer from a list of parameters.
    Source: Micikevicius et al., "Mixed precision training" (2018), section 3.1.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], make_optimizer: Callable):
        self.parameters = [p for p in parameters if p.requires_grad]
        self.masters = [nn.Parameter(p.detach().float()) for p in self.parameters]
        self.optimizer = make_optimizer(self.masters)

    def step(self) -> None:
        """Take a step with the model's gradients, and round the result into it."""
        pairs = list(zip(self.parameters, self.masters, strict=True))
        for parameter, master in pairs:
            gradient = parameter.grad
            master.grad = None if gradient is None else gradient.float()
        self.optimizer.step()
        for parameter, master in pairs:
            parameter.detach().copy_(master.detach())

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for parameter in [*self.parameters, *self.masters]:
            parameter.grad = None
