"""Activation checkpointing: keep a layer's input, and compute the rest once more.

    kept in forward   without: everything between the layers' inputs and outputs
                      with:    the inputs of the layers
    price             one more forward of each layer, during backward

Source: Chen et al., "Training deep nets with sublinear memory cost" (2016).
"""

import torch
from torch import nn

__all__ = ["Recomputed"]


class Recomputed(nn.Module):
    """A module of which forward keeps nothing but its input.

    Dropout draws the same numbers both times. module: takes and returns one tensor.
    """

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the module returns."""
        # Autograd passes by a function of which no input needs a gradient.
        needed = torch.empty(0, requires_grad=True)
        return _ComputedTwice.apply(self.module, x, needed)


class _ComputedTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, module, x, needed):
        ctx.module, ctx.random = module, torch.get_rng_state()
        ctx.random_on_gpu = torch.cuda.get_rng_state(x.device) if x.is_cuda else None
        ctx.save_for_backward(x)
        return module(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_(x.is_floating_point())
        gpus = [x.device] if x.is_cuda else []
        with torch.random.fork_rng(gpus), torch.enable_grad():
            torch.set_rng_state(ctx.random)
            if gpus:
                torch.cuda.set_rng_state(ctx.random_on_gpu, x.device)
            output = ctx.module(x)
        torch.autograd.backward(output, gradient)
        return None, x.grad, None
